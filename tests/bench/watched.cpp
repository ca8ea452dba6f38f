#include "watched.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <utility>

namespace tacho::bench {

void die(const std::string& what) {
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

void turn(const Pair& pair) {
  move(pair.client.get(), pair.server.get());
  move(pair.server.get(), pair.client.get());
}

void join_cgroup(const std::string& directory) {
  std::ofstream file(directory + "/cgroup.procs");
  file << ::getpid() << std::flush;
  if (!file) {
    die("join " + directory);
  }
}

void stay_on_one_cpu(unsigned cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  if (::sched_setaffinity(0, sizeof(set), &set) != 0) {
    die("sched_setaffinity");
  }
}

namespace {

config::Config watching(const std::string& cgroup, const Enabled& probes) {
  config::Config config;
  config::TargetRule rule;
  rule.name = "bench";
  rule.cgroup = cgroup;
  config.targets.push_back(rule);
  if (probes.process_target) {
    config::TargetRule other;
    other.name = "other";
    other.process = config::ProcessSelector{.exe = "/nobody/runs/this", .port = {}};
    config.targets.push_back(other);
  }
  config.probes.socket.enabled = probes.socket;
  config.probes.socket.attach = probes.attach;
  config.probes.poll.enabled = probes.poll;
  config.probes.sched.enabled = probes.sched;
  config.probes.anatomy.enabled = probes.anatomy;
  return config;
}

}  // namespace

std::unique_ptr<App> start_tacho(const std::string& cgroup, const Enabled& probes, std::uint32_t max_targets) {
  config::Config config = watching(cgroup, probes);
  if (max_targets > 0) {
    config.limits.max_targets = max_targets;
  }
  auto app = App::start(Cli{}, config, true);
  if (!app) {
    std::fprintf(stderr, "%s\n", app.error().message.c_str());
    std::exit(1);
  }
  return std::move(*app);
}

void shed(App& tacho, const std::string& cgroup, const Enabled& probes, tacho_shed level) {
  config::Config config = watching(cgroup, probes);
  config.limits.held_shed_level = level;
  tacho.scraper().reconfigure(config);
  // What lies between two samples is judged, and the next one tells the programs.
  const targets::Time now = std::chrono::steady_clock::now();
  for (int second = 1; second <= 4; ++second) {
    tacho.run(now + std::chrono::seconds(second));
  }
}

}  // namespace tacho::bench
