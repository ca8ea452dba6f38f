#include "web/gate.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <list>
#include <mutex>
#include <semaphore>
#include <sstream>
#include <thread>

#include "client.h"

namespace tacho::web {
namespace {

using std::chrono_literals::operator""ms;
using test::Client;
using test::Reply;

Response text(std::string body) {
  Response response;
  response.body = std::move(body);
  return response;
}

constexpr std::size_t kLarge = 8'000'000;  // fits into no socket buffer

/// A gate with handlers that the test lets go on.
class Desk {
 public:
  explicit Desk(const GateLimits& limits = {}) {
    auto listener = Listener::open(*ListenAddress::parse("127.0.0.1:0"));
    REQUIRE(listener);
    address_ = listener->bound();
    std::vector<Listener> listeners;
    listeners.push_back(std::move(*listener));
    auto gate = Gate::open(std::move(listeners), site_, *config_, liveness_, limits);
    REQUIRE(gate);
    gate_ = std::move(*gate);
  }
  Desk(const Desk&) = delete;
  Desk& operator=(const Desk&) = delete;
  ~Desk() {
    go.release(1000);
    gate_.reset();
  }

  [[nodiscard]] const std::string& address() const { return address_; }
  [[nodiscard]] const GateCounters& counters() const { return gate_->counters(); }

  std::counting_semaphore<> begun{0};  ///< released by each handler that begins
  std::counting_semaphore<> go{0};     ///< taken by each handler before it ends
  std::atomic<int> pages = 0;
  std::atomic<int> asked = 0;

 private:
  std::vector<Route> routes() {
    const auto slow = [this] {
      begun.release();
      go.acquire();
    };
    const auto type = [this](const Request&) {
      ++asked;
      return std::string("text/plain");
    };
    return {
        {.path = "/now", .methods = {"GET"}, .handler = [](const Request&) { return text("now"); }, .immediate = true},
        {.path = "/fast", .methods = {"GET"}, .handler = [](const Request&) { return text("fast"); }},
        {.path = "/slow",
         .methods = {"GET"},
         .handler =
             [slow](const Request& request) {
               slow();
               return text(request.remote);
             }},
        {.path = "/large",
         .methods = {"GET"},
         .handler = [](const Request&) { return text(std::string(kLarge, 'x')); }},
        {.path = "/page",
         .methods = {"GET"},
         .page = SharedPage{.content_type = type,
                            .make =
                                [this, slow](const std::string&) {
                                  slow();
                                  return Pieces{"page ", std::to_string(++pages)};
                                }}},
        {.path = "/heavy", .methods = {"GET"}, .page = SharedPage{.content_type = type, .make = [](const std::string&) {
                                                                    return Pieces{std::string(kLarge, 'x')};
                                                                  }}}};
  }

  Site site_{routes()};
  std::unique_ptr<LiveConfig> config_ = std::move(*LiveConfig::load({}));
  Liveness liveness_;
  std::string address_;
  std::unique_ptr<Gate> gate_;
};

template <class Condition>
bool eventually(const Condition& condition) {
  const auto start = std::chrono::steady_clock::now();
  while (test::since(start) < 10'000ms) {
    if (condition()) {
      return true;
    }
    std::this_thread::sleep_for(1ms);
  }
  return false;
}

std::string body(const Client& client) {
  return Reply::parse(client.read_all()).body;
}

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
  Desk desk({.connections = 4});
  CHECK(test::get(desk.address(), "/fast").body == "fast");
  CHECK(eventually([&] { return desk.counters().open == 0; }));
  std::list<Client> known;
  for (int i = 0; i < 3; ++i) {
    known.emplace_back(desk.address());
  }
  std::list<Client> strangers;
  for (int i = 0; i < 5; ++i) {
    strangers.emplace_back(desk.address(), 0, "127.0.0." + std::to_string(i + 2));
  }
  CHECK(eventually([&] { return desk.counters().displaced == 4; }));
  for (const Client& each : known) {
    each.send(test::get_request("/fast"));
    CHECK(body(each) == "fast");
  }
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
  CHECK(client.read_all().size() < kLarge);
}

/// Of the sockets that are connected to that port of this machine: bytes that the other side has not taken.
std::vector<std::size_t> undelivered(const std::string& address) {
  std::vector<std::size_t> list;
  const int port = std::stoi(address.substr(address.rfind(':') + 1));
  std::ifstream table("/proc/self/net/tcp");
  std::string line;
  std::getline(table, line);
  while (std::getline(table, line)) {
    std::istringstream fields(line);
    std::string number;
    std::string local;
    std::string remote;
    std::string state;
    std::string queues;
    fields >> number >> local >> remote >> state >> queues;
    constexpr const char* kListens = "0A";
    if (std::stoi(local.substr(local.find(':') + 1), nullptr, 16) == port && state != kListens) {
      list.push_back(std::stoul(queues, nullptr, 16));
    }
  }
  return list;
}

TEST_CASE("Of an answer that nobody takes the kernel keeps little, and nothing of one that was given up") {
  Desk desk({.client_timeout = 500ms});
  std::list<Client> clients;
  for (int i = 0; i < 20; ++i) {
    clients.emplace_back(desk.address(), 4096).send(test::get_request("/heavy"));
  }
  CHECK(eventually([&] { return desk.asked == 20; }));
  CHECK(eventually([&] {
    const auto queues = undelivered(desk.address());
    return queues.size() == 20 && std::ranges::count(queues, 0U) == 0;
  }));
  constexpr std::size_t kLittle = 128 << 10;
  for (const std::size_t queue : undelivered(desk.address())) {
    CHECK(queue <= kLittle);
  }
  CHECK(eventually([&] {
    const auto left = undelivered(desk.address());
    return desk.counters().cut_off == 20 && std::ranges::count(left, 0U) == std::ssize(left);
  }));
}

TEST_CASE("Who reads the end of its answer late, or has closed its side, gets all of it") {
  Desk desk;
  const Client late(desk.address(), 4096);
  late.send(test::get_request("/heavy"));
  if (GENERATE(false, true)) {
    late.finish();
  }
  constexpr std::size_t kRest = 40'000;
  std::string answer;
  while (answer.size() < kLarge - kRest) {
    answer += late.read_some(4096);
  }
  std::this_thread::sleep_for(1500ms);  // longer than the gate lingers
  answer += late.read_all();
  CHECK(Reply::parse(answer).body.size() == kLarge);
}

TEST_CASE("Pages that are read slowly make room for new ones") {
  Desk desk({.held_bytes = kLarge, .client_timeout = 60'000ms, .patience = 50ms});
  std::list<Client> slow;
  for (int i = 0; i < 3; ++i) {
    slow.emplace_back(desk.address(), 4096).send(test::get_request("/heavy"));
    CHECK(eventually([&] { return desk.asked == i + 1; }));
  }
  CHECK(test::get(desk.address(), "/heavy").body.size() == kLarge);
  CHECK(desk.counters().cut_off >= 1);
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
