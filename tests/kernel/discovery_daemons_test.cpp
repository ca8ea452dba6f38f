// Daemons: whoever began to listen ends, and its children, of whom no event tells, serve on.

#include <sys/syscall.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <filesystem>
#include <functional>
#include <string>

#include "kernel/support/child.h"
#include "kernel/support/running.h"
#include "kernel/support/server.h"

using tacho::UniqueFd;
using tacho::config::Config;
using namespace tacho::kernel_test;
using namespace std::chrono_literals;

namespace {

constexpr int kRequests = 300;

/// By its port, or as whatever listens; the latter outside of units and containers, where processes are targets.
struct Watch {
  std::string name;
  Config config;
  Labels target;
};

std::vector<Watch> watches_of(std::uint16_t port) {
  Config by_port;
  tacho::config::TargetRule rule;
  rule.name = "p";
  rule.process = tacho::config::ProcessSelector{.exe = std::nullopt, .port = port};
  by_port.targets.push_back(rule);
  by_port.probes.poll.enabled = false;
  Config discovered;
  discovered.probes.poll.enabled = false;
  discovered.limits.max_targets = 1000;  // others may run servers on this machine
  const std::string program = std::filesystem::read_symlink("/proc/self/exe").filename();
  return {{"by port", by_port, {{"target", "p"}}},
          {"discovered", discovered, {{"target", program + ":" + std::to_string(port)}}}};
}

double requests(Running& tacho, const Labels& target) {
  return tacho.page().value("tacho_requests_total", target);
}

/// Listens on `port`, waits if it is to, forks a process that serves so many requests, and ends.
std::function<void(Line&)> daemon_on(std::uint16_t port, bool waits) {
  return [port, waits](Line& parent) {
    const UniqueFd listener = listen_tcp(port);
    if (waits) {
      parent.tell();
      (void)parent.hear();
    }
    // A plain fork, since a Child would not keep the listening socket.
    const pid_t pid = ::fork();
    must(pid >= 0, "fork");
    if (pid > 0) {
      ::_exit(0);
    }
    ::alarm(60);
    parent.tell();
    serve(accept_from(listener), kRequests, Server::kRequest, Server::kReply);
    parent.tell();
    (void)parent.hear();
    ::_exit(0);
  };
}

/// Over several plans: each that is made for another reason is one more occasion to forget the server.
void ask_over_plans(Running& tacho, std::uint16_t port) {
  const UniqueFd client = connect_tcp(port);
  for (int asked = 0; asked < kRequests; asked += 30) {
    const Cgroup another(playground() + "/" + unique_name());
    ask(client, 30, Server::kRequest, Server::kReply);
    CHECK_FALSE(tacho.wait_for([] { return false; }, 100ms));
  }
}

}  // namespace

TEST_CASE("a daemon that forks when it is watched already is counted from its first request to its last") {
  const std::uint16_t port = port_of(listen_tcp());  // free a moment ago
  for (const Watch& watch : watches_of(port)) {
    CAPTURE(watch.name);
    Running tacho(watch.config);
    Child daemon(Cgroup::mount(), daemon_on(port, true));
    (void)daemon.hear();
    REQUIRE(tacho.wait_for([&] { return tacho.watches(watch.target); }));
    // The look at all processes that a new listener causes is over then.
    CHECK_FALSE(tacho.wait_for([] { return false; }, 2s));
    daemon.tell();
    (void)daemon.hear();
    ask_over_plans(tacho, port);
    (void)daemon.hear();
    CHECK(requests(tacho, watch.target) == kRequests);
    CHECK(tacho.watches(watch.target));
    daemon.tell();
    CHECK(tacho.wait_for([&] { return !tacho.watches(watch.target); }));
  }
}

TEST_CASE("a daemon that forks before anybody knows of it becomes no target that nobody is part of") {
  const std::uint16_t port = port_of(listen_tcp());
  for (const Watch& watch : watches_of(port)) {
    CAPTURE(watch.name);
    // It has looked at all processes a moment ago, and will not at once.
    Running tacho(watch.config);
    Child daemon(Cgroup::mount(), daemon_on(port, false));
    (void)daemon.hear();
    daemon.finish();
    const Labels nobody{{"target", "unknown:" + std::to_string(port)}};
    bool shown = false;
    REQUIRE(tacho.wait_for([&] {
      shown |= tacho.watches(nobody);
      return tacho.watches(watch.target);
    }));
    CHECK_FALSE(shown);
    ask_over_plans(tacho, port);
    (void)daemon.hear();
    CHECK(requests(tacho, watch.target) == kRequests);
    daemon.tell();
    CHECK(tacho.wait_for([&] { return !tacho.watches(watch.target); }));
  }
}

TEST_CASE("who takes a listening socket over is found, whether the one before ends or goes on") {
  const std::uint16_t port = port_of(listen_tcp());
  const bool ends = GENERATE(true, false);
  CAPTURE(ends);
  for (const Watch& watch : watches_of(port)) {
    CAPTURE(watch.name);
    Running tacho(watch.config);
    Child successor(Cgroup::mount(), [](Line& parent) {
      const auto pid = static_cast<pid_t>(parent.hear());
      const auto number = static_cast<int>(parent.hear());
      const UniqueFd process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
      const UniqueFd listener(static_cast<int>(::syscall(SYS_pidfd_getfd, process.get(), number, 0)));
      must(static_cast<bool>(listener), "pidfd_getfd");
      parent.tell();
      serve(accept_from(listener), kRequests, Server::kRequest, Server::kReply);
      parent.tell();
      (void)parent.hear();
    });
    Child first(Cgroup::mount(), [port](Line& parent) {
      const UniqueFd listener = listen_tcp(port);
      parent.tell(static_cast<std::uint64_t>(listener.get()));
      (void)parent.hear();
    });
    const std::uint64_t number = first.hear();
    REQUIRE(tacho.wait_for([&] { return tacho.watches(watch.target); }));
    CHECK_FALSE(tacho.wait_for([] { return false; }, 2s));
    successor.tell(static_cast<std::uint64_t>(first.pid()));
    successor.tell(number);
    (void)successor.hear();
    if (ends) {
      first.tell();
      first.finish();
    }
    // Until the next look: at once where a socket is left behind, else after five seconds.
    CHECK_FALSE(tacho.wait_for([] { return false; }, ends ? 2s : 7s));
    ask_over_plans(tacho, port);
    (void)successor.hear();
    CHECK(requests(tacho, watch.target) == kRequests);
    successor.tell();
    successor.finish();
    if (!ends) {
      first.tell();
      first.finish();
    }
    CHECK(tacho.wait_for([&] { return !tacho.watches(watch.target); }));
  }
}
