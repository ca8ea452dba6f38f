#include "web/gate.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <filesystem>
#include <fstream>
#include <list>
#include <thread>

#include "desk.h"

namespace tacho::web {
namespace {

using std::chrono_literals::operator""ms;
using test::body;
using test::Client;
using test::Desk;
using test::eventually;
using test::Reply;

TEST_CASE("A connection without a whole request is closed in time") {
  Desk desk({.head_timeout = 50ms});
  const Client silent(desk.address());
  const Client partial(desk.address());
  partial.send("GET / HT");
  CHECK(silent.read_all().empty());
  CHECK(partial.read_all().empty());
  CHECK(desk.counters().timed_out == 2);
}

TEST_CASE("A connection that its client closes is forgotten") {
  Desk desk;
  {
    const Client silent(desk.address());
    const Client partial(desk.address());
    partial.send("GET / HT");
  }
  CHECK(eventually([&] { return desk.counters().accepted == 2 && desk.counters().open == 0; }));
  CHECK(desk.counters().timed_out + desk.counters().displaced == 0);
}

TEST_CASE("Who comes when no descriptor is left is counted") {
  Desk desk;
  const UniqueFd client(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const UniqueFd highest(::fcntl(client.get(), F_DUPFD_CLOEXEC, 0));
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
  const rlimit none{.rlim_cur = static_cast<rlim_t>(highest.get()), .rlim_max = before.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &none) == 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(std::stoi(desk.address().substr(desk.address().rfind(':') + 1))));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  CHECK(::connect(client.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0);
  const bool counted = eventually([&] { return desk.counters().displaced == 1; });
  CHECK(::setrlimit(RLIMIT_NOFILE, &before) == 0);
  CHECK(counted);
  CHECK(desk.counters().accepted == 1);
}

TEST_CASE("Where there are too many, who has most loses the oldest") {
  Desk desk({.connections = 6});
  const Client other(desk.address(), 0, "127.0.0.2");
  const Client older(desk.address(), 0, "127.0.0.2");
  std::list<Client> crowd;
  for (int i = 0; i < 8; ++i) {
    crowd.emplace_back(desk.address());
  }
  for (int i = 0; i < 4; ++i) {
    CHECK(crowd.front().read_all().empty());
    crowd.pop_front();
  }
  CHECK(desk.counters().displaced == 4);
  for (const Client* const kept : {&other, &older, const_cast<const Client*>(&crowd.front())}) {
    kept->send(test::get_request("/fast"));
    CHECK(body(*kept) == "fast");
  }
}

TEST_CASE("Who was served before keeps connections that others lose") {
  Desk desk({.connections = 8});
  CHECK(test::get(desk.address(), "/fast").body == "fast");
  CHECK(eventually([&] { return desk.counters().open == 0; }));
  std::list<Client> known;
  for (int i = 0; i < 3; ++i) {
    known.emplace_back(desk.address());
  }
  std::list<Client> strangers;
  for (int i = 0; i < 10; ++i) {
    strangers.emplace_back(desk.address(), 0, "127.0.0." + std::to_string(i + 2));
  }
  CHECK(eventually([&] { return desk.counters().displaced == 5; }));
  for (const Client& each : known) {
    each.send(test::get_request("/fast"));
    CHECK(body(each) == "fast");
  }
}

TEST_CASE("Who comes for the first time finds room, though those who were served before hold all of it") {
  Desk desk({.connections = 16});
  constexpr int kSources = 4;
  const auto known = [](int i) { return "127.0.0." + std::to_string(i % kSources + 2); };
  for (int i = 0; i < kSources; ++i) {
    const Client before(desk.address(), 0, known(i));
    before.send(test::get_request("/fast"));
    CHECK(body(before) == "fast");
  }
  CHECK(eventually([&] { return desk.counters().open == 0; }));
  std::list<Client> crowd;
  const auto fill = [&] {
    for (int i = 0; i < 16; ++i) {
      crowd.emplace_back(desk.address(), 0, known(i));
    }
  };
  fill();
  const Client stranger(desk.address(), 0, "127.0.0.9");  // its request is still on its way
  CHECK(eventually([&] { return desk.counters().displaced == 1; }));
  fill();
  CHECK(eventually([&] { return desk.counters().displaced == 17; }));
  stranger.send(test::get_request("/fast"));
  CHECK(body(stranger) == "fast");
}

TEST_CASE("Of those who were served before, too, who has most loses first, not whose only one is oldest") {
  Desk desk({.connections = 6});
  const auto come_before = [&](const std::string& source) {
    const Client before(desk.address(), 0, source);
    before.send(test::get_request("/fast"));
    CHECK(body(before) == "fast");
  };
  come_before("127.0.0.2");
  come_before("127.0.0.3");
  come_before("127.0.0.4");
  CHECK(eventually([&] { return desk.counters().open == 0; }));
  const Client distant(desk.address(), 0, "127.0.0.2");  // its request is still on its way
  CHECK(eventually([&] { return desk.counters().open == 1; }));
  std::list<Client> crowd;
  for (int i = 0; i < 20; ++i) {
    crowd.emplace_back(desk.address(), 0, i % 2 == 0 ? "127.0.0.3" : "127.0.0.4");
  }
  CHECK(eventually([&] { return desk.counters().displaced == 15; }));
  distant.send(test::get_request("/fast"));
  CHECK(body(distant) == "fast");
}

TEST_CASE("Who waits for a page is displaced like others") {
  Desk desk({.connections = 4});
  std::list<Client> crowd;
  for (int i = 0; i < 4; ++i) {
    crowd.emplace_back(desk.address()).send(test::get_request("/page"));
  }
  CHECK(eventually([&] { return desk.asked == 4; }));
  const Client other(desk.address(), 0, "127.0.0.2");
  other.send(test::get_request("/now"));
  CHECK(body(other) == "now");
  CHECK(crowd.front().read_all().empty());
  CHECK(desk.counters().displaced == 1);
}

TEST_CASE("In line the sources take turns, oldest first") {
  Desk desk({.threads = 1});
  const Client first(desk.address());
  first.send(test::get_request("/slow"));
  desk.begun.acquire();
  std::list<Client> crowd;
  for (int i = 0; i < 5; ++i) {
    crowd.emplace_back(desk.address()).send(test::get_request("/slow"));
  }
  const Client other(desk.address(), 0, "127.0.0.2");
  other.send(test::get_request("/slow"));
  CHECK(test::get(desk.address(), "/now").body == "now");  // so the gate has taken the others before
  desk.go.release(3);                                      // the first, one of the crowd, the other
  CHECK(body(other) == "127.0.0.2");
  CHECK(body(crowd.front()) == "127.0.0.1");
  desk.go.release(5);
  for (const Client& each : crowd) {
    if (&each != &crowd.front()) {
      CHECK(body(each) == "127.0.0.1");
    }
  }
}

TEST_CASE("Where the line is too long, who has most there is told to come back") {
  Desk desk({.in_line = 3, .threads = 1});
  const Client first(desk.address());
  first.send(test::get_request("/slow"));
  desk.begun.acquire();
  std::list<Client> crowd;
  for (int i = 0; i < 4; ++i) {
    crowd.emplace_back(desk.address()).send(test::get_request("/slow"));
  }
  const Reply refused = Reply::parse(crowd.back().read_all());
  CHECK(refused.status == 503);
  CHECK(refused.header("Retry-After") == "1");
  const Client other(desk.address(), 0, "127.0.0.2");
  other.send(test::get_request("/slow"));
  CHECK(eventually([&] { return desk.counters().refused == 2; }));
  desk.go.release(10);
  CHECK(body(other) == "127.0.0.2");
}

TEST_CASE("A page is made once for all who asked before it was begun") {
  Desk desk;
  std::list<Client> clients;
  clients.emplace_back(desk.address()).send(test::get_request("/page"));
  desk.begun.acquire();
  for (int i = 0; i < 20; ++i) {  // too late for the one that is being made
    clients.emplace_back(desk.address()).send(test::get_request("/page"));
  }
  CHECK(eventually([&] { return desk.asked == 21; }));
  desk.go.release(1);
  CHECK(body(clients.front()) == "page 1");
  clients.pop_front();
  desk.go.release(1);
  for (const Client& each : clients) {
    CHECK(body(each) == "page 2");
  }
  CHECK(desk.pages == 2);
}

TEST_CASE("What is immediate is answered whatever is stuck, and what is stuck can be named") {
  Desk desk({.threads = 2});
  std::list<Client> stuck;
  for (const char* const path : {"/slow", "/slow", "/slow", "/page"}) {
    stuck.emplace_back(desk.address()).send(test::get_request(path));
  }
  for (int i = 0; i < 3; ++i) {  // two handlers and the maker of pages
    desk.begun.acquire();
  }
  CHECK(test::get(desk.address(), "/now").body == "now");
  CHECK(test::get(desk.address(), "/none").status == 404);
}

TEST_CASE("A client that takes nothing has an end") {
  Desk desk({.client_timeout = 100ms});
  const Client client(desk.address(), 4096);
  client.send(test::get_request("/large"));
  CHECK(eventually([&] { return desk.counters().cut_off == 1; }));
  CHECK(client.read_all().size() < test::kLarge);
}

/// How often a thread of this program has waited, by its name.
std::uint64_t waits_of(const std::string& thread) {
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string name;
    std::getline(std::ifstream(task.path() / "comm"), name);
    std::ifstream status(task.path() / "status");
    for (std::string line; name == thread && std::getline(status, line);) {
      constexpr std::string_view kWaits = "voluntary_ctxt_switches:";
      if (line.starts_with(kWaits)) {
        return std::stoull(line.substr(kWaits.size()));
      }
    }
  }
  FAIL("there is no thread " << thread);
  return 0;
}

TEST_CASE("Dripped heads wake the gate in vain only a few times") {
  const Desk desk({.head_timeout = 60'000ms});
  CHECK(test::get(desk.address(), "/fast").body == "fast");  // whose thread has its name by then
  const Client drip(desk.address());
  const int at_once = 1;
  REQUIRE(::setsockopt(drip.fd(), IPPROTO_TCP, TCP_NODELAY, &at_once, sizeof(at_once)) == 0);
  drip.send("GET /fast HTTP/1.1\r\nHost: a\r\nX: ");
  const auto start = std::chrono::steady_clock::now();
  const std::uint64_t before = waits_of("tacho-gate");
  for (int i = 0; i < 2000; ++i) {
    drip.send("x");
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  const std::uint64_t waits = waits_of("tacho-gate") - before;
  // A few bytes wake it; after that its clock does, each 50 ms.
  CHECK(waits <= 50 + static_cast<std::uint64_t>(test::since(start).count()) / 25);
  CHECK(waits < 1000);
  drip.send("\r\n\r\n");
  CHECK(body(drip) == "fast");
}

}  // namespace
}  // namespace tacho::web
