// Cgroups as targets: those that come late, nest, go; ports.

#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "config/load.h"
#include "kernel/support/child.h"
#include "kernel/support/place.h"
#include "kernel/support/running.h"
#include "kernel/support/server.h"
#include "kernel/support/wire.h"
#include "scrape/views.h"

using tacho::UniqueFd;
using namespace tacho::kernel_test;
using namespace std::chrono_literals;

namespace {

constexpr int kRequests = 23;

double requests(const Page& page, const Labels& target) {
  return page.value("tacho_requests_total", target);
}

/// As after minutes in which everybody has read the last values.
void forget_ended() {
  shared().app().scraper().release_forgotten(std::chrono::steady_clock::now() + 6min);
}

}  // namespace

TEST_CASE("a cgroup that is made while tacho runs is a target within a second") {
  const Cgroup cgroup(playground() + "/" + unique_name());
  CHECK(shared().wait_for([&] { return shared().watches({{"cgroup", cgroup.path()}}); }, 1s));
  CHECK(requests(shared().page(), {{"cgroup", cgroup.path()}}) == 0);
}

TEST_CASE("a cgroup that is there already is a target from the start") {
  const Cgroup cgroup(playground() + "/" + unique_name());
  Running later(watching(cgroup.path()));
  CHECK(later.watches({{"target", "t"}}));
  Server server(cgroup.directory());
  server.ask(kRequests);
  CHECK(requests(later.page(), {{"target", "t"}}) == kRequests);
  server.finish();
}

TEST_CASE("what is below a target belongs to it from its first request, before tacho has heard of it") {
  const Watched where;
  const Cgroup child(where.path() + "/child");
  const Cgroup grandchild(child.path() + "/grandchild");
  // Nobody lets tacho run meanwhile: only the kernel's own inheritance can count these.
  for (const Cgroup* cgroup : {&child, &grandchild}) {
    Server server(cgroup->directory());
    server.ask(kRequests);
    server.finish();
  }
  CHECK(requests(shared().page(), {{"cgroup", where.path()}}) == 2 * kRequests);
  // And it stays so when tacho has made up its mind.
  REQUIRE(shared().wait_for([&] {
    const auto targets = shared().app().scraper().view(tacho::scrape::summaries);
    return std::ranges::any_of(
        targets, [&](const auto& target) { return target.identity.path == where.path() && target.cgroups == 3; });
  }));
  Server server(grandchild.directory());
  server.ask(kRequests);
  CHECK(requests(shared().page(), {{"cgroup", where.path()}}) == 3 * kRequests);
  server.finish();
  CHECK_FALSE(shared().watches({{"cgroup", child.path()}}));
}

TEST_CASE("a cgroup that is removed is shown with its last values, then no longer") {
  auto cgroup = std::make_unique<Cgroup>(playground() + "/" + unique_name());
  const Labels target{{"cgroup", cgroup->path()}};
  REQUIRE(shared().wait_for([&] { return shared().watches(target); }));
  Server server(cgroup->directory());
  server.ask(kRequests);
  server.finish();
  cgroup.reset();
  REQUIRE(shared().wait_for([&] { return !shared().watches(target); }, 1s));
  for (int reader = 0; reader < 3; ++reader) {
    const Page last = shared().page();
    CHECK(requests(last, target) == kRequests);
    CHECK(last.value("tacho_connections_active", {{"cgroup", target.at("cgroup")}, {"role", "server"}}) == 0);
  }
  forget_ended();
  const Page after = shared().page();
  for (const std::string& family : after.families()) {
    CAPTURE(family);
    CHECK(after.count(family, target) == 0);
    CHECK(after.count(family + "_count", target) == 0);
  }
}

TEST_CASE("a cgroup that comes back goes on counting, whether its last values have been scraped or not") {
  const std::string path = playground() + "/" + unique_name();
  const Labels target{{"cgroup", path}};
  for (const int round : {0, 1, 2, 3}) {
    CAPTURE(round);
    Cgroup cgroup(path);
    REQUIRE(shared().wait_for([&] { return shared().watches(target); }));
    if (round != 2) {
      CHECK(requests(shared().page(), target) == round * kRequests);
    }
    Server server(cgroup.directory());
    server.ask(kRequests);
    server.finish();
    cgroup.remove();
    REQUIRE(shared().wait_for([&] { return !shared().watches(target); }));
    if (round % 2 == 1) {
      CHECK(requests(shared().page(), target) == (round + 1) * kRequests);
      forget_ended();
      CHECK(shared().page().count("tacho_requests_total", target) == 0);
    }
  }
}

TEST_CASE("a cgroup that comes back is counted from its making, before tacho has heard of it") {
  const Cgroup parent(playground() + "/" + unique_name());
  auto config = watching(parent.path() + "/*");
  config.probes.poll.enabled = false;
  const bool discovered = GENERATE(false, true);
  CAPTURE(discovered);
  if (discovered) {
    config.targets.clear();
    config.limits.max_targets = 1000;
  }
  const std::string path = parent.path() + "/web.service";
  const Labels target = discovered ? Labels{{"target", "web.service"}} : Labels{{"cgroup", path}};
  Running tacho(config);
  for (const int life : {1, 2, 3, 4}) {
    CAPTURE(life);
    Cgroup cgroup(path);
    Server server(cgroup.directory());
    if (life == 1) {
      REQUIRE(tacho.wait_for([&] { return tacho.watches(target); }));
    }
    // From the second life on nobody lets tacho run before the requests.
    server.ask(kRequests);
    server.finish();
    CHECK(requests(tacho.page(), target) == life * kRequests);
    if (life == 2) {
      CHECK(tacho.wait_for([&] { return tacho.watches(target); }));
    }
    cgroup.remove();
    if (life == 3) {
      CHECK(tacho.wait_for([&] { return !tacho.watches(target); }));
    }
  }
}

TEST_CASE("requests at a listener that outlives its service's cgroup have waited since they came") {
  static constexpr auto kBusy = 20ms;
  const Place::Kind kind = GENERATE(Place::Kind::tcp, Place::Kind::unix_stream);
  CAPTURE(name_of(kind));
  const Cgroup parent(playground() + "/" + unique_name());
  auto config = watching(parent.path() + "/*");
  config.probes.poll.enabled = false;
  const std::string path = parent.path() + "/web.service";
  const Labels target{{"cgroup", path}};
  Running tacho(config);
  const Place place(kind);
  const UniqueFd listener = place.listen();  // as systemd holds it
  const auto serve_life = [&] {
    Cgroup cgroup(path);
    Child server(cgroup.directory(), [&place, holder = ::getpid(), number = listener.get()](Line& line) {
      const UniqueFd held = take_from(holder, number);
      line.tell();
      for (int i = 0; i < kRequests; ++i) {
        (void)line.hear();
        std::this_thread::sleep_for(kBusy);
        serve(place.accept(held), 1, 10, 20);
      }
      (void)line.hear();
    });
    (void)server.hear();
    REQUIRE(tacho.wait_for([&] { return tacho.watches(target); }));
    for (int i = 0; i < kRequests; ++i) {
      const UniqueFd client = place.connect();
      send_once(client, 10);
      server.tell();
      receive_once(client, 20);
    }
    server.tell();
    server.finish();
    cgroup.remove();
    REQUIRE(tacho.wait_for([&] { return !tacho.watches(target); }));
  };
  for (const int life : {1, 2, 3}) {
    CAPTURE(life);
    serve_life();
    const Page page = tacho.page();
    const double least = life * kRequests * std::chrono::duration<double>(kBusy).count();
    CHECK(requests(page, target) == life * kRequests);
    CHECK(page.value("tacho_request_queue_seconds_sum", target) >= least);
    if (kind == Place::Kind::tcp) {
      CHECK(page.value("tacho_connections_total", {{"cgroup", path}, {"role", "server"}}) == life * kRequests);
    }
  }
}

TEST_CASE("a target with ports counts the servers on these and nothing of other servers") {
  const Cgroup cgroup(playground() + "/" + unique_name());
  Server wanted(cgroup.directory());
  Server unwanted(cgroup.directory());
  auto config = watching(cgroup.path());
  config.targets.front().ports = {wanted.port()};
  Running tacho(config);
  wanted.ask(kRequests);
  unwanted.ask(7);
  Server late(cgroup.directory());
  late.ask(5);
  const Page page = tacho.page();
  CHECK(requests(page, {{"target", "t"}}) == kRequests);
  CHECK(page.value("tacho_socket_operations_total", {{"target", "t"}, {"direction", "send"}}) == kRequests);
  CHECK(page.value("tacho_connections_total", {{"target", "t"}, {"role", "server"}}) == 1);
  wanted.finish();
  unwanted.finish();
  late.finish();
}

TEST_CASE("other ports are counted after a reload, on open connections, too") {
  const Cgroup cgroup(playground() + "/" + unique_name());
  const auto file = std::filesystem::temp_directory_path() / (unique_name() + ".yaml");
  const auto name_port = [&](std::uint16_t port) {
    std::ofstream(file) << "targets:\n  - {name: t, cgroup: \"" << cgroup.path() << "\", ports: [" << port << "]}\n";
  };
  const auto serve_all = [](const UniqueFd& listener, Line& parent) {
    parent.tell(port_of(listener));
    const UniqueFd connection = accept_from(listener);
    while (const auto count = parent.hear()) {
      serve(connection, static_cast<int>(count), 10, 20);
      parent.tell();
    }
  };
  Child first(cgroup.directory(), [&](Line& parent) { serve_all(listen_tcp(), parent); });
  const auto first_port = static_cast<std::uint16_t>(first.hear());
  Child second(cgroup.directory(), [&](Line& parent) { serve_all(listen_tcp(), parent); });
  const auto second_port = static_cast<std::uint16_t>(second.hear());
  name_port(first_port);
  Running tacho(tacho::config::load_file(file).config, file);
  const UniqueFd first_client = connect_tcp(first_port);
  const UniqueFd second_client = connect_tcp(second_port);
  const auto ask_both = [&](int count) {
    first.tell(static_cast<std::uint64_t>(count));
    ask(first_client, count, 10, 20);
    (void)first.hear();
    second.tell(static_cast<std::uint64_t>(2 * count));
    ask(second_client, 2 * count, 10, 20);
    (void)second.hear();
  };
  const Labels target{{"target", "t"}};
  const auto connections = [&] {
    return tacho.page().value("tacho_connections_active", {{"target", "t"}, {"role", "server"}});
  };
  ask_both(kRequests);
  CHECK(requests(tacho.page(), target) == kRequests);
  CHECK(connections() == 1);
  const auto reload = [&] {
    REQUIRE(tacho.app().reload());
    // A plan that follows another one at once comes a moment later.
    const auto enough = std::chrono::steady_clock::now() + 500ms;
    REQUIRE(tacho.wait_for([&] { return std::chrono::steady_clock::now() > enough; }));
  };
  name_port(second_port);
  reload();
  ask_both(kRequests);
  CHECK(requests(tacho.page(), target) == kRequests + 2 * kRequests);
  CHECK(connections() == 1);
  name_port(first_port);
  reload();
  ask_both(kRequests);
  CHECK(requests(tacho.page(), target) == 2 * kRequests + 2 * kRequests);
  CHECK(tacho.page().value("tacho_requests_unanswered_total", target) == 0);
  for (Child* child : {&first, &second}) {
    child->tell(0);
    child->finish();
  }
  std::filesystem::remove(file);
}

TEST_CASE("processes that move from one target to another are counted where they are") {
  const Watched first;
  const Watched second;
  Server server(first.directory());
  server.ask(kRequests);
  move_to(second.directory(), server.child().pid());
  server.ask(7);
  CHECK(first.value("tacho_requests_total") == kRequests);
  CHECK(second.value("tacho_requests_total") == 7);
  server.finish();
}

TEST_CASE("targets beyond the limit are counted together as other") {
  auto config = watching(playground() + "/*");
  config.limits.max_targets = 2;
  config.probes.poll.enabled = false;
  std::vector<std::unique_ptr<Cgroup>> cgroups;
  for (int i = 0; i < 4; ++i) {
    cgroups.push_back(std::make_unique<Cgroup>(playground() + "/" + unique_name()));
  }
  Running tacho(config);
  for (const auto& cgroup : cgroups) {
    Server server(cgroup->directory());
    server.ask(kRequests);
    server.finish();
  }
  const Page page = tacho.page();
  CHECK(page.value("tacho_targets_overflowed_total") == 2);
  CHECK(requests(page, {{"target", "other"}}) == 2 * kRequests);
  CHECK(page.count("tacho_requests_total", {{"target", "t"}}) == 2);
  for (int i = 0; i < 2; ++i) {
    CHECK(requests(page, {{"cgroup", cgroups[static_cast<std::size_t>(i)]->path()}}) == kRequests);
  }
}
