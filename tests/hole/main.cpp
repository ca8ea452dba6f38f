// tacho with a deliberate hole, for tests only: whoever asks for /hole/attempts has the web process try what somebody
// would who has taken it over, and reads how each attempt ended; /hole/flood has it ask for all there is and
// take no answer; /hole/hoard has it keep all answers that it can get; /hole/crash ends it by a write to nowhere.

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/bpf.h>
#include <linux/filter.h>
#include <linux/perf_event.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "boundary/lane.h"
#include "boundary/question.h"
#include "page/query.h"
#include "run.h"

namespace {

using tacho::boundary::Kind;
using tacho::web::Request;
using tacho::web::Response;

/// "name value", a line each; the value is 0 for what succeeded, else the errno.
class Report {
 public:
  void add(const std::string& name, long result) {
    const int error = result < 0 ? errno : 0;
    text_ += fmt::format("{} {}\n", name, error);
  }
  [[nodiscard]] Response response() const {
    Response response;
    response.body = text_;
    return response;
  }

 private:
  std::string text_;
};

void try_files(Report& report) {
  for (const char* path : {"/", ".", "..", "/etc/passwd", "/etc/shadow", "/proc/self/status", "/proc/1/environ",
                           "/sys/fs/cgroup", "/dev/null", "/tmp", "../../../../etc/passwd"}) {
    report.add(std::string("open:") + path, ::open(path, O_RDONLY));
    report.add(std::string("chroot:") + path, ::chroot(path));
  }
  report.add("create:file", ::open("file", O_WRONLY | O_CREAT, 0600));
  report.add("mkdir:folder", ::mkdir("folder", 0700));
  report.add("mount", ::mount("none", "/", "tmpfs", 0, nullptr));
}

void try_sockets(Report& report) {
  for (const auto& [name, family, type] : {std::tuple{"inet", AF_INET, SOCK_STREAM},
                                           {"inet6", AF_INET6, SOCK_DGRAM},
                                           {"unix", AF_UNIX, SOCK_STREAM},
                                           {"netlink", AF_NETLINK, SOCK_RAW},
                                           {"packet", AF_PACKET, SOCK_RAW}}) {
    report.add(std::string("socket:") + name, ::socket(family, type, 0));
  }
  std::array<int, 2> pair{};
  report.add("socketpair", ::socketpair(AF_UNIX, SOCK_STREAM, 0, pair.data()));
}

void try_bpf(Report& report) {
  const std::array<bpf_insn, 2> program{
      bpf_insn{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0, .src_reg = 0, .off = 0, .imm = 0},
      bpf_insn{.code = BPF_JMP | BPF_EXIT, .dst_reg = 0, .src_reg = 0, .off = 0, .imm = 0}};
  bpf_attr load{};
  load.prog_type = BPF_PROG_TYPE_SOCKET_FILTER;
  load.insn_cnt = program.size();
  load.insns = reinterpret_cast<std::uint64_t>(program.data());
  load.license = reinterpret_cast<std::uint64_t>("GPL");
  report.add("bpf:load", ::syscall(SYS_bpf, BPF_PROG_LOAD, &load, sizeof(load)));
  bpf_attr map{};
  map.map_type = BPF_MAP_TYPE_ARRAY;
  map.key_size = map.value_size = 4;
  map.max_entries = 1;
  report.add("bpf:map", ::syscall(SYS_bpf, BPF_MAP_CREATE, &map, sizeof(map)));
  bpf_attr next{};
  report.add("bpf:list", ::syscall(SYS_bpf, BPF_MAP_GET_NEXT_ID, &next, sizeof(next)));
  perf_event_attr event{};
  event.type = PERF_TYPE_SOFTWARE;
  event.size = sizeof(event);
  report.add("perf_event", ::syscall(SYS_perf_event_open, &event, 0, -1, -1, 0));
}

void try_processes(Report& report, pid_t collector) {
  for (const auto& [name, pid] : {std::pair{"collector", collector}, {"starter", ::getppid()}, {"init", 1}}) {
    const std::string who = name;
    report.add("see:" + who, ::kill(pid, 0));
    report.add("stop:" + who, ::kill(pid, SIGSTOP));
    report.add("ptrace:" + who, ::ptrace(PTRACE_SEIZE, pid, nullptr, nullptr));
    char byte = 0;
    iovec local{.iov_base = &byte, .iov_len = 1};
    iovec remote{.iov_base = reinterpret_cast<void*>(&try_files), .iov_len = 1};
    report.add("read:" + who, ::process_vm_readv(pid, &local, 1, &remote, 1, 0));
    report.add("write:" + who, ::process_vm_writev(pid, &local, 1, &remote, 1, 0));
    report.add("pidfd:" + who, ::syscall(SYS_pidfd_open, pid, 0));
    report.add("signal:" + who, ::syscall(SYS_tgkill, pid, pid, 0));
    report.add("signal_by_descriptor:" + who, ::fcntl(STDERR_FILENO, F_SETOWN, pid));
  }
}

bool leads_to_another_process(int descriptor) {
  int type = 0;
  socklen_t size = sizeof(type);
  return ::getsockopt(descriptor, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_SEQPACKET;
}

/// Descriptors of its own: who receives one has to close it, which may take for ever.
void try_passing(Report& report) {
  constexpr int kDescriptors = 64;
  std::array<std::byte, 1> nothing{};
  for (int descriptor = 3; descriptor < kDescriptors; ++descriptor) {
    if (leads_to_another_process(descriptor)) {
      report.add("pass:" + std::to_string(descriptor),
                 tacho::boundary::send_message(descriptor, nothing, descriptor, MSG_DONTWAIT) ? 0 : -1);
    }
  }
}

int find_listener() {
  constexpr int kDescriptors = 64;
  for (int descriptor = 3; descriptor < kDescriptors; ++descriptor) {
    int listens = 0;
    socklen_t size = sizeof(listens);
    if (::getsockopt(descriptor, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) == 0 && listens != 0) {
      return descriptor;
    }
  }
  return -1;
}

/// What it may do with the socket that it serves on, besides.
void try_listener(Report& report) {
  const int listener = find_listener();
  std::array<sock_filter, 1> code{sock_filter{.code = BPF_RET | BPF_K, .jt = 0, .jf = 0, .k = 0}};
  const sock_fprog filter{.len = code.size(), .filter = code.data()};
  report.add("listener:filter", ::setsockopt(listener, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof(filter)));
  report.add("listener:close", ::shutdown(listener, SHUT_RDWR));
  // One that was closed so is a socket like any other.
  sockaddr_in there{};
  there.sin_family = AF_INET;
  there.sin_port = htons(9);
  there.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  report.add("listener:connect", ::sendto(listener, "x", 1, MSG_FASTOPEN | MSG_DONTWAIT,
                                          reinterpret_cast<sockaddr*>(&there), sizeof(there)));
  iovec part{.iov_base = const_cast<char*>("x"), .iov_len = 1};  // NOLINT(*-const-cast)
  msghdr message{};
  message.msg_name = &there;
  message.msg_namelen = sizeof(there);
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  report.add("listener:connect_by_message", ::sendmsg(listener, &message, MSG_FASTOPEN | MSG_DONTWAIT));
}

void try_power(Report& report) {
  std::array<char*, 1> none{};
  const pid_t child = ::fork();
  if (child == 0) {
    ::_exit(0);
  }
  report.add("fork", child);
  try {
    std::thread([] {}).join();
    report.add("thread", 0);
  } catch (const std::system_error& error) {
    errno = error.code().value();
    report.add("thread", -1);
  }
  report.add("execve", ::execve("/bin/sh", none.data(), none.data()));
  report.add("setuid", ::setresuid(0, 0, 0));
  report.add("unshare", ::unshare(CLONE_NEWUSER));
  void* const code = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  report.add("code", code == MAP_FAILED ? -1 : 0);
  report.add("io_uring", ::syscall(SYS_io_uring_setup, 1, nullptr));
  report.add("keyring", ::syscall(SYS_add_key, "user", "x", "x", 1, -2));
}

Response attempts(const Request& request) {
  const auto parameters = tacho::page::parse_query(request.query);
  Report report;
  report.add("uid " + std::to_string(::getuid()) + " is", 0);
  try_files(report);
  try_sockets(report);
  try_bpf(report);
  try_processes(report, static_cast<pid_t>(std::stol(parameters.at("collector"))));
  try_power(report);
  try_passing(report);
  try_listener(report);
  return report.response();
}

/// Asks for pages and more, as fast as it can, and takes no answer: says how many questions went out.
Response flood(const Request& /*request*/) {
  constexpr int kDescriptors = 256;
  constexpr auto kTime = std::chrono::milliseconds(500);
  std::array<std::byte, sizeof(tacho::boundary::Question)> junk{};
  unsigned sent = 0;
  for (const auto end = std::chrono::steady_clock::now() + kTime; std::chrono::steady_clock::now() < end;) {
    for (int descriptor = 3; descriptor < kDescriptors; ++descriptor) {
      if (!leads_to_another_process(descriptor)) {
        continue;
      }
      for (const auto kind : {Kind::text_metrics, Kind::openmetrics, Kind::targets, Kind::table, Kind::reload}) {
        const tacho::boundary::Question question{.limit = tacho::boundary::kMaxRows, .kind = kind};
        sent += ::send(descriptor, &question, sizeof(question), MSG_DONTWAIT | MSG_NOSIGNAL) > 0 ? 1U : 0U;
      }
      junk.fill(static_cast<std::byte>(sent));
      ::send(descriptor, junk.data(), junk.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    }
  }
  Response response;
  response.body = std::to_string(sent);
  return response;
}

/// Asks for pages and keeps the answers: says how many descriptors it has of them.
Response hoard(const Request& /*request*/) {
  constexpr int kDescriptors = 64;
  constexpr int kMost = 100'000;
  const tacho::boundary::Question question{.kind = Kind::text_metrics};
  std::vector<tacho::UniqueFd> kept;
  for (int descriptor = 3; descriptor < kDescriptors; ++descriptor) {
    if (!leads_to_another_process(descriptor)) {
      continue;
    }
    while (kept.size() < kMost && tacho::boundary::send_message(descriptor, std::as_bytes(std::span(&question, 1)))) {
      std::array<std::byte, 64> status{};
      auto answer = tacho::boundary::receive_message(descriptor, status);
      if (!answer.descriptor) {
        break;
      }
      kept.push_back(std::move(answer.descriptor));
    }
  }
  Response response;
  response.body = std::to_string(kept.size());
  return response;
}

Response crash(const Request& /*request*/) {
  static int* volatile nowhere = nullptr;  // where the compiler does not know
  *nowhere = 1;                            // NOLINT(clang-analyzer-core.NullDereference): that is what it is for
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  return tacho::run_program(argc, argv, [] {
    return std::vector<tacho::web::Route>{
        {.path = "/hole/attempts", .methods = {"GET"}, .handler = attempts},
        {.path = "/hole/flood", .methods = {"GET"}, .handler = flood},
        {.path = "/hole/hoard", .methods = {"GET"}, .handler = hoard},
        {.path = "/hole/crash", .methods = {"GET"}, .handler = crash},
    };
  });
}
