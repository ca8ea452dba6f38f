// Processes as targets: by port, by executable; what children inherit and what exec ends.

#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <string>
#include <thread>

#include "kernel/support/child.h"
#include "kernel/support/running.h"
#include "kernel/support/server.h"

using tacho::UniqueFd;
using tacho::config::Config;
using namespace tacho::kernel_test;
using namespace std::chrono_literals;

namespace {

constexpr int kRequests = 23;
constexpr int kConnections = 5;
constexpr auto kQueue = 50ms;
const Labels kTarget{{"target", "p"}};

Config process_config(std::optional<std::string> exe, std::optional<std::uint16_t> port) {
  Config config;
  tacho::config::TargetRule rule;
  rule.name = "p";
  rule.process = tacho::config::ProcessSelector{.exe = std::move(exe), .port = port};
  config.targets.push_back(rule);
  config.probes.poll.enabled = false;
  return config;
}

double requests(Running& tacho) {
  return tacho.page().value("tacho_requests_total", kTarget);
}

/// Sends requests to whoever serves on `port` as `child` is told.
void ask_child(const Child& child, std::uint16_t port, int count) {
  const UniqueFd client = connect_tcp(port);
  child.tell(static_cast<std::uint64_t>(count));
  ask(client, count, Server::kRequest, Server::kReply);
  (void)child.hear();
}

}  // namespace

TEST_CASE("a process is a target by the port it listens on, from the start or from when it listens") {
  Server early("");
  Running tacho(process_config(std::nullopt, early.port()));
  CHECK(tacho.watches(kTarget));
  Server other("");
  early.ask(kRequests);
  other.ask(7);
  CHECK(requests(tacho) == kRequests);
  const std::uint16_t port = early.port();
  early.finish();
  CHECK(tacho.wait_for([&] { return !tacho.watches(kTarget); }));
  Server late("", port);
  CHECK(tacho.wait_for([&] { return tacho.watches(kTarget); }));
  late.ask(5);
  CHECK(requests(tacho) >= 5);
  late.finish();
  other.finish();
}

TEST_CASE("a process is a target by its executable, whenever it is executed") {
  const OtherName name;
  Running tacho(process_config(name.path(), std::nullopt));
  CHECK_FALSE(tacho.watches(kTarget));
  Child child("", [&name](Line& parent) {
    const UniqueFd listener = listen_tcp();
    parent.tell(port_of(listener));
    name.run(listener, parent);
  });
  const auto port = static_cast<std::uint16_t>(child.hear());
  (void)child.hear();
  REQUIRE(tacho.wait_for([&] { return tacho.watches(kTarget); }, 2s));
  ask_child(child, port, kRequests);
  CHECK(requests(tacho) == kRequests);
  child.tell(0);
  child.finish();
  CHECK(tacho.wait_for([&] { return !tacho.watches(kTarget); }));
}

TEST_CASE("a child of a watched process is watched from its first operation") {
  const Shared<std::uint16_t> port;
  Child master("", [&port](Line& parent) {
    const UniqueFd listener = listen_tcp();
    *port = port_of(listener);
    parent.tell();
    (void)parent.hear();  // tacho knows us
    // A plain fork, since a Child would not keep the listening socket.
    const pid_t pid = ::fork();
    must(pid >= 0, "fork");
    if (pid == 0) {
      serve(accept_from(listener), kRequests, Server::kRequest, Server::kReply);
      parent.tell();
      (void)parent.hear();
      ::_exit(0);
    }
    ::pause();
  });
  (void)master.hear();
  Running tacho(process_config(std::nullopt, *port));
  REQUIRE(tacho.watches(kTarget));
  master.tell();
  // Tacho does not run meanwhile: the kernel alone knows about the child.
  const UniqueFd client = connect_tcp(*port);
  ask(client, kRequests, Server::kRequest, Server::kReply);
  (void)master.hear();
  CHECK(requests(tacho) == kRequests);
  master.tell();
}

TEST_CASE("a process that comes back under the same name has its queue measured from the first connection") {
  const auto body = [](std::uint16_t wanted) {
    return [wanted](Line& parent) {
      const UniqueFd listener = listen_tcp(wanted);
      parent.tell(port_of(listener));
      (void)parent.hear();  // tacho knows us
      for (int i = 0; i < kConnections; ++i) {
        (void)parent.hear();
        std::this_thread::sleep_for(kQueue);
        serve(accept_from(listener), 1, Server::kRequest, Server::kReply);
      }
      parent.tell();
    };
  };
  const auto serve_all = [](Child& child, std::uint16_t port) {
    child.tell();
    for (int i = 0; i < kConnections; ++i) {
      const UniqueFd client = connect_tcp(port);
      send_once(client, Server::kRequest);
      child.tell();
      receive_once(client, Server::kReply);
    }
    (void)child.hear();
    child.finish();
  };
  Child first("", body(0));
  const auto port = static_cast<std::uint16_t>(first.hear());
  Running tacho(process_config(std::nullopt, port));
  REQUIRE(tacho.watches(kTarget));
  serve_all(first, port);
  const double before = tacho.page().value("tacho_request_queue_seconds_sum", kTarget);
  CHECK(before >= kConnections * 0.05);
  CHECK(tacho.wait_for([&] { return !tacho.watches(kTarget); }));
  Child second("", body(port));
  (void)second.hear();
  REQUIRE(tacho.wait_for([&] { return tacho.watches(kTarget); }));
  serve_all(second, port);
  CHECK(requests(tacho) == 2 * kConnections);
  CHECK(tacho.page().value("tacho_request_queue_seconds_sum", kTarget) - before >= kConnections * 0.05);
}

TEST_CASE("a process that executes something else is no longer watched") {
  const OtherName name;
  const Shared<std::uint16_t> port;
  Child child("", [&](Line& parent) {
    UniqueFd watched = listen_tcp();
    const UniqueFd other = listen_tcp();
    *port = port_of(other);
    parent.tell(port_of(watched));
    const auto count = static_cast<int>(parent.hear());
    serve(accept_from(watched), count, Server::kRequest, Server::kReply);
    parent.tell();
    (void)parent.hear();
    watched.reset();
    name.run(other, parent);
  });
  const auto watched_port = static_cast<std::uint16_t>(child.hear());
  Running tacho(process_config(std::nullopt, watched_port));
  REQUIRE(tacho.watches(kTarget));
  ask_child(child, watched_port, kRequests);
  CHECK(requests(tacho) == kRequests);
  child.tell();
  (void)child.hear();  // it has become another program
  ask_child(child, *port, 7);
  CHECK(requests(tacho) == kRequests);
  CHECK(tacho.wait_for([&] { return !tacho.watches(kTarget); }));
  child.tell(0);
  child.finish();
}

TEST_CASE("a process rule that matches nothing is absent, and no event is lost for it") {
  Running tacho(process_config("/nonexistent/program", std::nullopt));
  CHECK(tacho.app().absent() == std::vector<std::string>{"p"});
  CHECK(tacho.page().value("tacho_targets") == 0);
}
