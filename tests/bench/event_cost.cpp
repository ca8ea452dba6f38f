// What a socket operation costs more while it is observed: nanoseconds per send or receive on a TCP connection over
// loopback, one request and one reply at a time, in one process. Everything is measured in turns in one run, since the
// speed of a machine drifts; the floor is what empty programs on the same hooks cost.
//
// usage: event_cost CGROUP [rounds]     CGROUP: an empty directory of the v2 hierarchy to work in

#include <arpa/inet.h>
#include <bpf/floor.skel.h>
#include <bpf/libbpf.h>
#include <netinet/tcp.h>
#include <spdlog/spdlog.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "app.h"
#include "base/unique_fd.h"
#include "kernel/bpf_object.h"

namespace {

using tacho::UniqueFd;

constexpr int kTurns = 1'000;
constexpr int kBatches = 80;
constexpr int kOperationsPerTurn = 4;

struct Pair {
  UniqueFd client;
  UniqueFd server;
};

[[noreturn]] void die(const std::string& what) {
  std::perror(what.c_str());
  std::exit(1);
}

Pair connect_pair() {
  UniqueFd listener(::socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (::bind(listener.get(), generic, length) != 0 || ::listen(listener.get(), 1) != 0 ||
      ::getsockname(listener.get(), generic, &length) != 0) {
    die("listen");
  }
  Pair pair{UniqueFd(::socket(AF_INET, SOCK_STREAM, 0)), {}};
  if (::connect(pair.client.get(), generic, length) != 0) {
    die("connect");
  }
  pair.server.reset(::accept(listener.get(), nullptr, nullptr));
  const int on = 1;
  ::setsockopt(pair.client.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  ::setsockopt(pair.server.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  return pair;
}

void move(int from, int to) {
  char byte = 'x';
  if (::send(from, &byte, 1, 0) != 1 || ::recv(to, &byte, 1, 0) != 1) {
    die("send/recv");
  }
}

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
  double best = time_per(count, work);
  for (int i = 1; i < kBatches; ++i) {
    best = std::min(best, time_per(count, work));
  }
  return best;
}

void join_cgroup(const std::string& directory) {
  std::ofstream file(directory + "/cgroup.procs");
  file << ::getpid() << std::flush;
  if (!file) {
    die("join " + directory);
  }
}

double socket_cost() {
  const Pair pair = connect_pair();
  return best_of(kOperationsPerTurn, [&pair] {
    move(pair.client.get(), pair.server.get());
    move(pair.server.get(), pair.client.get());
  });
}

double unrelated_cost() {
  return best_of(1, [] { ::syscall(SYS_getppid); });
}

std::unique_ptr<tacho::App> start_tacho(const std::string& cgroup, bool poll) {
  tacho::Cli cli;
  tacho::config::Config config;
  tacho::config::TargetRule rule;
  rule.name = "bench";
  rule.cgroup = cgroup;
  config.targets.push_back(rule);
  config.probes.poll.enabled = poll;
  auto app = tacho::App::start(cli, config, true);
  if (!app) {
    std::fprintf(stderr, "%s\n", app.error().message.c_str());
    std::exit(1);
  }
  return std::move(*app);
}

std::unique_ptr<tacho::kernel::BpfObject> start_floor() {
  using tacho::kernel::Alternative;
  using tacho::kernel::Hook;
  static constexpr std::array<std::string_view, 3> kPrograms{"floor_send", "floor_receive", "floor_data_ready"};
  static constexpr std::array kWays{Alternative{"tp_btf", kPrograms}};
  static constexpr std::array kHooks{Hook{"floor", kWays}};
  std::size_t size = 0;
  const void* bytes = floor_bpf__elf_bytes(&size);
  auto object = tacho::kernel::BpfObject::load({"floor", {static_cast<const std::byte*>(bytes), size}}, kHooks, {},
                                               [](auto&) { return tacho::Result<void>(); });
  if (!object) {
    std::fprintf(stderr, "%s\n", object.error().message.c_str());
    std::exit(1);
  }
  return std::move(*object);
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: event_cost CGROUP [rounds]\n");
    return 2;
  }
  spdlog::set_level(spdlog::level::err);
  const std::string base = argv[1];
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 7;
  const std::string watched = base + "/watched";
  const std::string unwatched = base + "/unwatched";
  ::mkdir(watched.c_str(), 0755);
  ::mkdir(unwatched.c_str(), 0755);
  const std::string glob = watched.substr(watched.find(base.substr(base.rfind('/'))));
  std::map<std::string, std::vector<double>> cost;
  join_cgroup(watched);
  for (int round = 0; round < rounds; ++round) {
    const double bare = socket_cost();
    cost["socket: nothing attached"].push_back(bare);
    {
      const auto floor = start_floor();
      cost["socket: floor (empty programs)"].push_back(socket_cost() - bare);
    }
    const double bare_call = unrelated_cost();
    {
      const auto app = start_tacho(glob, false);
      cost["socket: watched"].push_back(socket_cost() - bare);
      join_cgroup(unwatched);
      cost["socket: unwatched"].push_back(socket_cost() - bare);
      join_cgroup(watched);
    }
    {
      const auto app = start_tacho(glob, true);
      cost["getppid: added"].push_back(unrelated_cost() - bare_call);
    }
  }
  join_cgroup(base.substr(0, base.rfind('/')));
  ::rmdir(watched.c_str());
  ::rmdir(unwatched.c_str());
  for (const auto& [what, values] : cost) {
    const auto [least, most] = std::ranges::minmax(values);
    std::printf("%-34s %8.1f ns  (%.1f … %.1f)\n", what.c_str(), median(values), least, most);
  }
  const double floor = median(cost["socket: floor (empty programs)"]);
  std::printf("watched / floor %.2f, unwatched / floor %.2f\n", median(cost["socket: watched"]) / floor,
              median(cost["socket: unwatched"]) / floor);
  return 0;
}
