// What all BPF programs of the machine took while a command ran, as the kernel counts it: "program NAME RUNS NS" for
// each that ran. In a guest whose clock counts instructions, nanoseconds are those (tests/matrix/requests).
//
// usage: program_cost COUNTER COMMAND [ARGUMENT…]
//
// COUNTER: "none", or the program of tests/bench/send_counter.bpf.c that is attached meanwhile, with those of the same
// name and a suffix. Ends as the command does.

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <bpf/send_counter.skel.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>

#include "base/unique_fd.h"

namespace {

using tacho::UniqueFd;

struct Runs {
  std::string name;
  std::uint64_t count = 0;
  std::uint64_t ns = 0;
};

[[noreturn]] void die(const std::string& what) {
  std::perror(what.c_str());
  std::exit(1);
}

/// By the kernel's number of the program.
std::map<std::uint32_t, Runs> programs() {
  std::map<std::uint32_t, Runs> found;
  std::uint32_t id = 0;
  while (bpf_prog_get_next_id(id, &id) == 0) {
    const UniqueFd program(bpf_prog_get_fd_by_id(id));
    bpf_prog_info info{};
    std::uint32_t size = sizeof(info);
    if (program && bpf_obj_get_info_by_fd(program.get(), &info, &size) == 0) {
      found[id] = {.name = info.name, .count = info.run_cnt, .ns = info.run_time_ns};
    }
  }
  return found;
}

struct Counter {
  send_counter_bpf* object = nullptr;

  explicit Counter(std::string_view chosen) {
    if (chosen == "none") {
      return;
    }
    object = send_counter_bpf::open();
    if (object == nullptr) {
      die("send_counter");
    }
    bpf_program* program = nullptr;
    bool is_there = false;
    bpf_object__for_each_program(program, object->obj) {
      const std::string_view name = bpf_program__name(program);
      const bool wanted = name == chosen || name.starts_with(std::string(chosen) + "_");
      bpf_program__set_autoload(program, wanted);
      is_there = is_there || wanted;
    }
    if (!is_there || send_counter_bpf::load(object) != 0 || send_counter_bpf::attach(object) != 0) {
      die("send_counter: " + std::string(chosen));
    }
  }
  Counter(const Counter&) = delete;
  Counter& operator=(const Counter&) = delete;
  ~Counter() { send_counter_bpf::destroy(object); }
};

int run(char** command) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::execvp(command[0], command);
    std::perror(command[0]);
    std::_Exit(127);
  }
  int status = 0;
  if (child < 0 || ::waitpid(child, &status, 0) != child) {
    die("fork");
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: program_cost COUNTER COMMAND [ARGUMENT...]\n");
    return 2;
  }
  const Counter counter(argv[1]);
  const UniqueFd statistics(bpf_enable_stats(BPF_STATS_RUN_TIME));
  if (!statistics) {
    die("bpf_enable_stats");
  }
  const auto before = programs();
  const int status = run(argv + 2);
  for (const auto& [id, runs] : programs()) {
    const auto found = before.find(id);
    const Runs start = found == before.end() ? Runs{} : found->second;
    if (runs.count > start.count) {
      std::printf("program %s %llu %llu\n", runs.name.c_str(),
                  static_cast<unsigned long long>(runs.count - start.count),
                  static_cast<unsigned long long>(runs.ns - start.ns));
    }
  }
  return status;
}
