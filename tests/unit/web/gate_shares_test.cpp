// Where many pages are asked for at a time, each source has its share: of the sending, and of the memory.
#include <sys/socket.h>

#include <atomic>
#include <list>
#include <string>
#include <thread>
#include <vector>

#include "desk.h"

namespace tacho::web {
namespace {

using std::chrono_literals::operator""ms;
using test::Client;
using test::Desk;
using test::eventually;
using test::kLarge;

/// What has come by now; 0 also at the end.
std::size_t take(const Client& client) {
  static std::vector<char> bytes(1 << 20);
  const ssize_t count = ::recv(client.fd(), bytes.data(), bytes.size(), MSG_DONTWAIT);
  return count > 0 ? static_cast<std::size_t>(count) : 0;
}

TEST_CASE("Who takes many pages at a time does not delay who takes one") {
  // One page serves the crowd; from the moment it is there the gate has more to send than the clients have room for.
  Desk desk({.held_bytes = 8 * kLarge, .source_held_bytes = 8 * kLarge});
  constexpr int kCrowd = 100;
  std::list<Client> crowd;
  for (int i = 0; i < kCrowd; ++i) {
    crowd.emplace_back(desk.address(), 0, "127.0.0.2").send(test::get_request("/heavy"));
  }
  CHECK(eventually([&] { return desk.asked == kCrowd; }));
  for (const Client& each : crowd) {
    CHECK(!each.read_some(1).empty());
  }
  const Client reader(desk.address(), 1 << 22, "127.0.0.3");
  reader.send(test::get_request("/heavy"));
  std::size_t taken_by_crowd = 0;
  std::size_t taken = 0;
  const auto begin = std::chrono::steady_clock::now();
  // One thread takes everything: it finds each one's turn whatever the machine does meanwhile.
  while (taken < kLarge && test::since(begin) < 10'000ms) {
    for (const Client& each : crowd) {
      taken_by_crowd += take(each);
      taken += take(reader);
    }
  }
  CHECK(taken >= kLarge);

  CHECK(taken_by_crowd < kCrowd / 5 * 2 * kLarge);
}

TEST_CASE("Who waits for its turn to be sent more is not taken for one who takes nothing") {
  // No time at all for large answers: all of them wait for the gate.
  Desk desk({.sending = 0ms, .held_bytes = kLarge, .head_timeout = 300ms, .client_timeout = 50ms, .patience = 50ms});
  const Client waits(desk.address());
  waits.send(test::get_request("/heavy"));
  CHECK(!waits.read_some(1).empty());
  const Client silent(desk.address());
  CHECK(silent.read_all().empty());
  CHECK(desk.counters().timed_out == 1);
  CHECK(desk.counters().cut_off == 0);
  CHECK(desk.counters().open == 1);
}

TEST_CASE("A request that waits to be read is not late") {
  Desk desk({.reading = 0ms, .head_timeout = 50ms});
  const Client spoken(desk.address());
  spoken.send(test::get_request("/now"));
  CHECK(eventually([&] { return desk.counters().accepted == 1; }));
  const Client silent(desk.address());
  CHECK(silent.read_all().empty());
  CHECK(desk.counters().timed_out == 1);
  CHECK(desk.counters().open == 1);
}

TEST_CASE("One source cannot fill the memory for pages, and makes room for its own next one itself") {
  Desk desk(
      {.held_bytes = 4 * kLarge, .source_held_bytes = 2 * kLarge, .client_timeout = 60'000ms, .patience = 60'000ms});
  std::list<Client> greedy;
  int asked = 0;
  const auto ask = [&](const Client& client) {
    client.send(test::get_request("/heavy"));
    ++asked;
    CHECK(eventually([&] { return desk.asked == asked; }));
  };
  constexpr int kHeld = 2;
  for (int i = 0; i < 6; ++i) {
    ask(greedy.emplace_back(desk.address(), 4096, "127.0.0.3"));
    if (i < kHeld) {
      CHECK(!greedy.back().read_some(1).empty());  // so it has a page of its own
    }
  }
  const Client other(desk.address(), 0, "127.0.0.4");
  ask(other);
  CHECK(test::body(other).size() == kLarge);
  CHECK(desk.counters().cut_off == 0);
  CHECK(!greedy.back().read_some(1).empty());  // after half a second
  CHECK(desk.counters().cut_off == 1);
  CHECK(greedy.front().read_all().size() < kLarge);
}

TEST_CASE("Who has no page yet does not wait until others have taken theirs") {
  Desk desk({.held_bytes = kLarge, .page_waits = 60'000ms, .client_timeout = 60'000ms, .patience = 200ms});
  std::atomic<bool> stop = false;
  // Six MB a second: never silent for as long as is allowed.
  const Client client(desk.address(), 1 << 18, "127.0.0.3");
  client.send(test::get_request("/heavy"));
  CHECK(!client.read_some(1).empty());
  std::thread slow([&] {
    while (!stop && !client.read_some(1 << 16).empty()) {
      std::this_thread::sleep_for(10ms);
    }
  });
  const Client reader(desk.address(), 0, "127.0.0.4");
  reader.send(test::get_request("/heavy"));
  CHECK(test::body(reader).size() == kLarge);
  CHECK(desk.counters().cut_off == 1);
  stop = true;
  slow.join();
}

}  // namespace
}  // namespace tacho::web
