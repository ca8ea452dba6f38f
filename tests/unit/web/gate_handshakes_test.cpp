// Which TLS handshakes are given up where there are too many.
#include <poll.h>

#include <list>

#include "certified.h"
#include "desk.h"

namespace tacho::web {
namespace {

using std::chrono_literals::operator""ms;
using test::Certified;
using test::Client;
using test::Desk;
using test::eventually;

/// What a client says first; its beginning is enough to wait for.
constexpr std::string_view kHello("\x16\x03\x01\x00\x80\x01\x00\x00\x7c\x03\x03", 11);

bool is_open(const Client& client) {
  pollfd look{.fd = client.fd(), .events = POLLIN | POLLRDHUP, .revents = 0};
  return ::poll(&look, 1, 0) == 0;
}

/// A gate without time for any handshake: whoever has said something waits for it.
TEST_CASE_METHOD(Certified, "Of handshakes those that kept us waiting are shed, not those that wait for us") {
  Desk desk({.source_handshakes = 6, .handshaking = 0ms}, configure());
  std::list<Client> spoken;
  std::list<Client> silent;
  for (int i = 0; i < 3; ++i) {
    spoken.emplace_back(desk.address()).send(kHello);
  }
  for (unsigned i = 0; i < 6; ++i) {
    silent.emplace_back(desk.address());
    CHECK(eventually([&] { return desk.counters().accepted == 4 + i; }));
  }
  CHECK(eventually([&] { return desk.counters().displaced == 3; }));
  for (int i = 0; i < 3; ++i) {
    CHECK(silent.front().read_all().empty());
    silent.pop_front();
  }
  for (const Client& each : spoken) {
    CHECK(is_open(each));
  }
  // Where all of a source wait for us, it has the limit all the same.
  for (int i = 0; i < 6; ++i) {
    spoken.emplace_back(desk.address()).send(kHello);
  }
  CHECK(eventually([&] { return desk.counters().accepted == 15 && desk.counters().open == 6; }));
}

TEST_CASE_METHOD(Certified, "Of those that keep us waiting who has just come stays") {
  Desk desk({.source_handshakes = 3, .handshaking = 0ms}, configure());
  const Client spoken(desk.address());
  spoken.send(kHello);
  std::list<Client> silent;
  for (unsigned i = 0; i < 6; ++i) {
    silent.emplace_back(desk.address());
    CHECK(eventually([&] { return desk.counters().accepted == 2 + i; }));
  }
  CHECK(eventually([&] { return desk.counters().displaced == 4; }));
  for (int i = 0; i < 4; ++i) {
    CHECK(silent.front().read_all().empty());
    silent.pop_front();
  }
  CHECK(is_open(silent.front()));
  CHECK(is_open(silent.back()));
  CHECK(is_open(spoken));
}

TEST_CASE_METHOD(Certified, "Who has left amid its handshake makes room first") {
  Desk desk({.connections = 4, .handshaking = 0ms}, configure());
  const Client spoken(desk.address());
  spoken.send(kHello);
  constexpr unsigned kGone = 8;
  for (unsigned i = 1; i <= kGone; ++i) {
    const Client gone(desk.address());
    gone.send(kHello);
    CHECK(eventually([&] { return desk.counters().accepted == 1 + i; }));
  }
  CHECK(eventually([&] { return desk.counters().displaced == 1 + kGone - 4; }));
  CHECK(is_open(spoken));
}

TEST_CASE_METHOD(Certified, "A handshake that waits for us is not late") {
  Desk desk({.handshaking = 0ms, .head_timeout = 50ms}, configure());
  const Client spoken(desk.address());
  spoken.send(kHello);
  const Client silent(desk.address());
  CHECK(silent.read_all().empty());
  CHECK(desk.counters().timed_out == 1);
  CHECK(is_open(spoken));
}

}  // namespace
}  // namespace tacho::web
