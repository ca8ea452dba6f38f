// Clients that take their answers slowly, late or not at all.
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <list>
#include <sstream>
#include <thread>

#include "desk.h"

namespace tacho::web {
namespace {

using std::chrono_literals::operator""ms;
using test::Client;
using test::Desk;
using test::eventually;
using test::kLarge;
using test::Reply;

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
  // All of them have to be seen to wait at the same time, also beside others that use the CPUs.
  Desk desk({.client_timeout = 3000ms});
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

TEST_CASE("Who never takes what the kernel keeps for it is counted as one who took too little") {
  Desk desk({.client_timeout = 100ms});
  const Client silent(desk.address(), 4096);
  silent.send(test::get_request("/medium"));
  CHECK(eventually([&] { return desk.counters().open == 0 && desk.counters().accepted == 1; }));
  CHECK(desk.counters().cut_off == 1);
  const Client good(desk.address());
  good.send(test::get_request("/medium"));
  CHECK(test::body(good).size() == test::kMedium);
  CHECK(eventually([&] { return desk.counters().open == 0 && desk.counters().accepted == 2; }));
  CHECK(desk.counters().cut_off == 1);
}

TEST_CASE("Who resets its connection keeps no place, whatever the kernel still counts") {
  Desk desk;
  constexpr int kClients = 300;
  for (int i = 0; i < kClients; ++i) {
    const Client gone(desk.address());
    gone.send(i % 2 == 0 ? test::get_request("/fast") : "GET /fast HTTP/0.9\r\n\r\n");
    gone.finish();
  }
  CHECK(eventually([&] { return desk.counters().accepted == kClients && desk.counters().open == 0; }));
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

TEST_CASE("Who holds most pages makes room first, however long another one has held its own") {
  Desk desk({.held_bytes = 3 * kLarge, .client_timeout = 60'000ms, .patience = 60'000ms});
  auto ask = [&desk, asked = 0](const Client& client) mutable {
    client.send(test::get_request("/heavy"));
    ++asked;
    CHECK(eventually([&] { return desk.asked == asked; }));
    CHECK(!client.read_some(1).empty());  // so it has a page of its own
  };
  const Client patient(desk.address(), 4096, "127.0.0.2");
  ask(patient);
  std::list<Client> greedy;
  for (int i = 0; i < 2; ++i) {
    ask(greedy.emplace_back(desk.address(), 4096, "127.0.0.3"));
  }
  const Client other(desk.address(), 0, "127.0.0.4");
  other.send(test::get_request("/heavy"));
  CHECK(test::body(other).size() == kLarge);
  CHECK(desk.counters().cut_off == 1);
  CHECK(patient.read_all().size() > kLarge);
}

TEST_CASE("Who takes its page steadily keeps it, however many take theirs in drips") {
  Desk desk({.held_bytes = 2 * kLarge, .client_timeout = 60'000ms, .patience = 200ms});
  // All of them were served before, or none was.
  const bool known = GENERATE(true, false);
  const auto came_before = [&](const std::string& source) {
    const Client before(desk.address(), 0, source);
    return !known || (before.send(test::get_request("/now")) && test::body(before) == "now");
  };
  CHECK(came_before("127.0.0.2"));
  const Client reader(desk.address(), 1 << 18, "127.0.0.2");
  reader.send(test::get_request("/heavy"));
  std::string taken = reader.read_some(1 << 16);
  std::list<Client> dripping;
  constexpr int kOthers = 4;
  while (taken.size() < kLarge) {
    const std::string more = reader.read_some(1 << 16);  // six MB a second at the most
    REQUIRE(!more.empty());
    taken += more;
    if (std::ssize(dripping) < kOthers && desk.asked == std::ssize(dripping) + 1) {
      const std::string source = "127.0.0." + std::to_string(dripping.size() + 3);
      CHECK(came_before(source));
      dripping.emplace_back(desk.address(), 4096, source).send(test::get_request("/heavy"));
    }
    for (const Client& each : dripping) {
      std::array<char, 2048> some{};
      ::recv(each.fd(), some.data(), some.size(), MSG_DONTWAIT);
    }
    std::this_thread::sleep_for(10ms);
  }
  taken += reader.read_all();
  CHECK(Reply::parse(taken).body.size() == kLarge);
  CHECK(std::ssize(dripping) == kOthers);
  CHECK(desk.counters().cut_off >= 1);
}

TEST_CASE("Who was served before may pause for a moment, and a stranger in its place may not") {
  Desk desk({.held_bytes = kLarge, .page_waits = 60'000ms, .client_timeout = 60'000ms, .patience = 50ms});
  const bool known = GENERATE(true, false);
  const Client before(desk.address(), 0, known ? "127.0.0.2" : "127.0.0.3");
  before.send(test::get_request("/now"));
  CHECK(test::body(before) == "now");
  const Client reader(desk.address(), 4096, "127.0.0.2");
  reader.send(test::get_request("/heavy"));
  CHECK(!reader.read_some(1).empty());
  std::this_thread::sleep_for(100ms);
  const Client other(desk.address(), 4096, "127.0.0.2");  // has to wait for the reader, for as long as it takes
  other.send(test::get_request("/heavy"));
  CHECK(eventually([&] { return desk.asked == 2; }));
  const auto answered = known ? reader.read_all().size() : other.read_all().size();
  CHECK(answered > kLarge);
  CHECK(desk.counters().cut_off == (known ? 0 : 1));
}

TEST_CASE("Answers of one's own take no more memory than is meant for them, and who has most loses the first") {
  Desk desk({.held_answers = 3 * kLarge, .client_timeout = 60'000ms, .patience = 60'000ms});
  const Client patient(desk.address(), 4096, "127.0.0.2");
  std::list<Client> greedy;
  for (int i = 0; i < 5; ++i) {
    const Client& each = i == 0 ? patient : greedy.emplace_back(desk.address(), 4096, "127.0.0.3");
    each.send(test::get_request("/large"));
    CHECK(!each.read_some(1).empty());
  }
  CHECK(eventually([&] { return desk.counters().cut_off == 2; }));
  CHECK(patient.read_all().size() > kLarge);
  CHECK(greedy.back().read_all().size() > kLarge);
  CHECK(greedy.front().read_all().size() < kLarge);
}

}  // namespace
}  // namespace tacho::web
