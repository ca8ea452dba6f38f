// What an event costs more while it is observed. Socket: nanoseconds per send or receive on a TCP connection over
// loopback, one request and one reply at a time, in one process. Switch: nanoseconds per change of the running thread,
// with the wake-up before it, between two threads that pass a byte to and fro on one CPU. Everything is measured in
// turns in one run, since the speed of a machine drifts; the floor is what empty programs on the same hooks cost.
//
// usage: event_cost CGROUP [rounds [batches [levels|ways [pause]]]]
//        event_cost CGROUP profile EVENT
//
// CGROUP: an empty directory of the v2 hierarchy to work in. batches: of 1 000 turns each; the least disturbed one
// counts. levels: also of what can be shed, and with two sets of probes for four, which counts where a program's load
// takes ten seconds; ways: of what can be shed, too, and of other ways to watch. pause: seconds before each
// measurement, in which the kernel may end what it puts off (maps that are freed). profile: prints where the programs'
// lines are, and makes the event without end, for tests/matrix/profile; EVENT: one of "socket", "switch", "socket
// anatomy" and "switch anatomy".

#include <bpf/floor.skel.h>
#include <bpf/libbpf.h>
#include <sched.h>
#include <spdlog/spdlog.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/unique_fd.h"
#include "kernel/bpf_object.h"
#include "program_lines.h"
#include "watched.h"

namespace {

using namespace tacho::bench;
using tacho::UniqueFd;

constexpr int kTurns = 1'000;
int batches = 80;
std::chrono::seconds pause_before{0};

double time_per(int count, const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < kTurns; ++i) {
    work();
  }
  const std::chrono::duration<double, std::nano> elapsed = std::chrono::steady_clock::now() - start;
  return elapsed.count() / kTurns / count;
}

/// The least disturbed of many short batches: others on the machine only ever add time.
double best_of(int count, const std::function<void()>& work) {
  std::this_thread::sleep_for(pause_before);
  double best = time_per(count, work);
  for (int i = 1; i < batches; ++i) {
    best = std::min(best, time_per(count, work));
  }
  return best;
}

double cost_on(const Pair& pair) {
  return best_of(kOperationsPerTurn, [&pair] { turn(pair); });
}

double socket_cost() {
  return cost_on(connect_pair());
}

/// Two threads on one CPU; a round trip of a byte is two switches.
class PingPong {
 public:
  PingPong() {
    if (::pipe(there_.data()) != 0 || ::pipe(back_.data()) != 0) {
      die("pipe");
    }
    other_ = std::jthread([this] {
      stay_on_one_cpu();
      char byte{};
      while (::read(there_[0], &byte, 1) == 1 && ::write(back_[1], &byte, 1) == 1) {
      }
    });
  }
  PingPong(const PingPong&) = delete;
  PingPong& operator=(const PingPong&) = delete;
  ~PingPong() {
    ::close(there_[1]);
    other_.join();
    for (const int end : {there_[0], back_[0], back_[1]}) {
      ::close(end);
    }
  }
  void round_trip() const {
    char byte = 'x';
    if (::write(there_[1], &byte, 1) != 1 || ::read(back_[0], &byte, 1) != 1) {
      die("ping-pong");
    }
  }

 private:
  std::array<int, 2> there_{};
  std::array<int, 2> back_{};
  std::jthread other_;
};

/// Of a connection that is put aside: the first one that is used is chosen, and of the next one a read of more than a
/// byte is looked at for HTTP/2 before.
double aside_cost() {
  const Pair chosen = connect_pair();
  move(chosen.client.get(), chosen.server.get());
  const Pair pair = connect_pair();
  std::array<char, 64> text{};
  for (const auto& [from, to] :
       {std::pair(pair.client.get(), pair.server.get()), {pair.server.get(), pair.client.get()}}) {
    if (::send(from, text.data(), text.size(), 0) != static_cast<ssize_t>(text.size()) ||
        ::recv(to, text.data(), text.size(), MSG_WAITALL) != static_cast<ssize_t>(text.size())) {
      die("send/recv");
    }
  }
  return cost_on(pair);
}

double switch_cost() {
  cpu_set_t before;
  ::sched_getaffinity(0, sizeof(before), &before);
  stay_on_one_cpu();
  const PingPong threads;
  const double cost = best_of(2, [&threads] { threads.round_trip(); });
  ::sched_setaffinity(0, sizeof(before), &before);
  return cost;
}

/// What a process costs that has never been watched: of threads that have, a state is kept. So it is born in its
/// cgroup, by a process that moves there.
double in_other_process(const std::string& cgroup, double (*measure)()) {
  std::array<int, 2> ends{};
  if (::pipe(ends.data()) != 0) {
    die("pipe");
  }
  const UniqueFd result(ends[0]);
  UniqueFd from_child(ends[1]);
  const pid_t child = ::fork();
  if (child < 0) {
    die("fork");
  }
  double cost = 0;
  if (child == 0) {
    join_cgroup(cgroup);
    const pid_t born_there = ::fork();
    if (born_there != 0) {
      std::_Exit(born_there > 0 && ::waitpid(born_there, nullptr, 0) == born_there ? 0 : 1);
    }
    cost = measure();
    std::_Exit(::write(from_child.get(), &cost, sizeof(cost)) == sizeof(cost) ? 0 : 1);
  }
  from_child.reset();
  if (::read(result.get(), &cost, sizeof(cost)) != sizeof(cost) || ::waitpid(child, nullptr, 0) != child) {
    die("another process");
  }
  return cost;
}

double unrelated_cost() {
  return best_of(1, [] { ::syscall(SYS_getppid); });
}

using tacho::kernel::Alternative;
using tacho::kernel::Hook;

constexpr std::array<std::string_view, 3> kSocketFloor{"floor_send", "floor_receive", "floor_data_ready"};
constexpr std::array<std::string_view, 2> kSwitchFloor{"floor_switch", "floor_wakeup"};
constexpr std::array kSocketWays{Alternative{"tp_btf", kSocketFloor}};
constexpr std::array kSwitchWays{Alternative{"tp_btf", kSwitchFloor}};
constexpr std::array kSocketHooks{Hook{"floor", kSocketWays}};
constexpr std::array kSwitchHooks{Hook{"floor", kSwitchWays}};

std::unique_ptr<tacho::kernel::BpfObject> start_floor(std::span<const Hook> hooks) {
  std::size_t size = 0;
  const void* bytes = floor_bpf__elf_bytes(&size);
  auto object =
      tacho::kernel::BpfObject::load({"floor", {static_cast<const std::byte*>(bytes), size}}, hooks, {}, [](auto&) {});
  if (!object) {
    std::fprintf(stderr, "%s\n", object.error().message.c_str());
    std::exit(1);
  }
  return std::move(*object);
}

double quartile(std::vector<double> values, std::size_t number) {
  std::ranges::sort(values);
  return values[(values.size() - 1) * number / 4];
}

double median(const std::vector<double>& values) {
  return quartile(values, 2);
}

/// Makes an event of a watched cgroup without end, for tests/matrix/profile.
[[noreturn]] void profile(const std::string& glob, std::string_view event) {
  const bool anatomy = event.ends_with(" anatomy");
  const bool socket = event.starts_with("socket");
  const auto app = start_tacho(glob, {.socket = socket || anatomy, .sched = !socket || anatomy, .anatomy = anatomy});
  // Before the events that warm up: printing takes seconds, and behind a pause more is looked at.
  tacho::bench::print_program_lines();
  stay_on_one_cpu();
  const Pair pair = connect_pair();
  const PingPong threads;
  for (int i = 0;; ++i) {
    socket ? turn(pair) : threads.round_trip();
    if (i == 20 * kTurns) {
      std::printf("@@begin\n");
      std::fflush(stdout);
    }
  }
}

using Costs = std::map<std::string, std::vector<double>>;

/// Of hooks by function and by tracepoint alone, beside a target by program, and among a thousand targets. `base` and
/// `glob` as in main(), which has measured what the same takes without tacho.
void measure_ways(const std::string& base, const std::string& glob, double bare, double bare_switch, Costs& cost) {
  using tacho::config::Attach;
  const std::string unwatched = base + "/unwatched";
  {
    const auto app = start_tacho(glob, {.socket = true, .attach = Attach::fentry});
    cost["socket: watched, fexit"].push_back(socket_cost() - bare);
  }
  {
    const auto app = start_tacho(glob, {.socket = true, .attach = Attach::tracepoint});
    cost["socket: watched, no fexit"].push_back(socket_cost() - bare);
  }
  {
    const auto app = start_tacho(glob, {.socket = true, .sched = true, .process_target = true});
    cost["socket: watched, process target"].push_back(socket_cost() - bare);
    cost["socket: unwatched, process target"].push_back(in_other_process(unwatched, socket_cost) - bare);
    cost["switch: watched, process target"].push_back(switch_cost() - bare_switch);
    cost["switch: unwatched, process target"].push_back(in_other_process(unwatched, switch_cost) - bare_switch);
  }
  constexpr int kMore = 1'000;
  const auto more = [&base](int i) { return base + "/watched-too-" + std::to_string(i); };
  for (int i = 0; i < kMore; ++i) {
    ::mkdir(more(i).c_str(), 0755);
  }
  {
    const auto app = start_tacho(glob + "*", {.socket = true, .sched = true}, kMore + 2);
    cost["socket: watched, 1000 targets"].push_back(socket_cost() - bare);
    cost["switch: watched, 1000 targets"].push_back(switch_cost() - bare_switch);
  }
  for (int i = 0; i < kMore; ++i) {
    ::rmdir(more(i).c_str());
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: event_cost CGROUP [rounds [batches [levels|ways [pause]]]]\n");
    return 2;
  }
  spdlog::set_level(spdlog::level::err);
  const std::string base = argv[1];
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 7;
  batches = argc > 3 ? std::atoi(argv[3]) : batches;
  pause_before = std::chrono::seconds(argc > 5 ? std::atoi(argv[5]) : 0);
  const std::string_view more = argc > 4 ? argv[4] : "";
  const bool ways = more == "ways";
  const bool brief = more == "levels";
  const bool levels = ways || brief;
  const std::string watched = base + "/watched";
  const std::string unwatched = base + "/unwatched";
  ::mkdir(watched.c_str(), 0755);
  ::mkdir(unwatched.c_str(), 0755);
  const std::string glob = watched.substr(watched.find(base.substr(base.rfind('/'))));
  Costs cost;
  join_cgroup(watched);
  if (argc > 3 && std::string_view(argv[2]) == "profile") {
    profile(glob, argv[3]);
  }
  for (int round = 0; round < rounds; ++round) {
    const double bare = socket_cost();
    const double bare_switch = switch_cost();
    const double bare_call = unrelated_cost();
    cost["socket: nothing attached"].push_back(bare);
    cost["switch: nothing attached"].push_back(bare_switch);
    {
      const auto floor = start_floor(kSocketHooks);
      cost["socket: floor (empty programs)"].push_back(socket_cost() - bare);
    }
    {
      const auto floor = start_floor(kSwitchHooks);
      cost["switch: floor (empty programs)"].push_back(switch_cost() - bare_switch);
    }
    // To load all programs is what takes longest in an emulator: whatever one tacho can tell, it tells.
    {
      const Enabled all{.socket = true, .sched = true, .anatomy = true};
      const auto app = start_tacho(glob, all);
      cost["socket: watched, anatomy"].push_back(socket_cost() - bare);
      cost["switch: watched, anatomy"].push_back(switch_cost() - bare_switch);
      if (levels) {
        for (const tacho_shed level : {TACHO_SHED_INTERVALS, TACHO_SHED_ANATOMY, TACHO_SHED_STREAMS}) {
          shed(*app, glob, all, level);
          cost["socket: watched, anatomy, level " + std::to_string(level)].push_back(socket_cost() - bare);
          if (level == TACHO_SHED_ANATOMY) {
            cost["switch: watched, anatomy, level 3"].push_back(switch_cost() - bare_switch);
          }
        }
        shed(*app, glob, all, TACHO_SHED_SOCKETS);
        cost["socket: watched, anatomy, level 5"].push_back(aside_cost() - bare);
      }
    }
    const auto of_sockets = [&] {
      cost["socket: watched"].push_back(socket_cost() - bare);
      cost["socket: unwatched"].push_back(in_other_process(unwatched, socket_cost) - bare);
    };
    if (!brief) {
      {
        const auto app = start_tacho(glob, {.socket = true});
        of_sockets();
      }
      const auto app = start_tacho(glob, {.sched = true});
      cost["switch: watched"].push_back(switch_cost() - bare_switch);
      cost["switch: unwatched"].push_back(in_other_process(unwatched, switch_cost) - bare_switch);
    }
    {
      const auto app = start_tacho(glob, {.socket = true, .poll = true, .sched = true});
      if (brief) {
        of_sockets();
      }
      cost["getppid: added"].push_back(unrelated_cost() - bare_call);
      cost["switch: watched, polls"].push_back(switch_cost() - bare_switch);
      cost["switch: unwatched, polls"].push_back(in_other_process(unwatched, switch_cost) - bare_switch);
    }
    if (ways) {
      measure_ways(base, glob, bare, bare_switch, cost);
    }
  }
  join_cgroup(base.substr(0, base.rfind('/')));
  ::rmdir(watched.c_str());
  ::rmdir(unwatched.c_str());
  for (const auto& [what, values] : cost) {
    std::printf("%-34s %8.1f ns  (%.1f … %.1f)\n", what.c_str(), median(values), quartile(values, 1),
                quartile(values, 3));
  }
  for (const std::string event : {"socket", "switch"}) {
    if (!cost.contains(event + ": watched")) {
      continue;
    }
    const double floor = median(cost[event + ": floor (empty programs)"]);
    std::printf("%s, watched / floor %.2f, unwatched / floor %.2f\n", event.c_str(),
                median(cost[event + ": watched"]) / floor, median(cost[event + ": unwatched"]) / floor);
  }
  return 0;
}
