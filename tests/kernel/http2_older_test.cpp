// HTTP/2 on connections whose preface came before tacho.

#include <catch2/catch.hpp>
#include <cstdint>
#include <optional>
#include <string>

#include "kernel/support/cgroup.h"
#include "kernel/support/child.h"
#include "kernel/support/frames.h"
#include "kernel/support/running.h"
#include "kernel/support/wire.h"

using tacho::UniqueFd;
using tacho::config::Http2;
using namespace tacho::kernel_test;

namespace {

constexpr std::uint32_t kTimes = 23;

/// A server with one connection, which is older than the tacho that watches it.
class Older {
 public:
  explicit Older(Http2 http2)
      : cgroup_(playground() + "/" + unique_name()),
        server_(cgroup_.directory(), [](Line& parent) { serve_streams(parent); }),
        client_(connect_tcp(static_cast<std::uint16_t>(server_.hear()))) {
    say(kPreface + frame(kSettings, 0, 0) + frame(kHeaders, 1, 10), 1, 1);
    auto config = watching(cgroup_.path());
    config.targets.front().http2 = http2;
    config.probes.poll.enabled = false;
    tacho_.emplace(config);
  }
  ~Older() {
    server_.tell(0);
    server_.finish();
  }
  Older(const Older&) = delete;
  Older& operator=(const Older&) = delete;

  /// The server reads `text` at once, and answers in one send as many streams as are named, from `stream` on.
  void say(const std::string& text, std::uint32_t stream, std::uint32_t streams) {
    send_bytes(client_, text);
    for (const std::uint64_t word : {std::uint64_t{text.size()}, std::uint64_t{stream}, std::uint64_t{streams}}) {
      server_.tell(word);
    }
    (void)server_.hear();
  }
  double value(const char* family) { return tacho_->page().value(family, {{"target", "t"}}); }
  double lost() {
    return tacho_->page().value("tacho_lost_events_total", {{"probe", "socket"}, {"reason", "http2_step"}});
  }

 private:
  static void serve_streams(Line& parent) {
    const UniqueFd listener = listen_tcp();
    parent.tell(port_of(listener));
    const UniqueFd connection = accept_from(listener);
    while (const std::uint64_t bytes = parent.hear()) {
      receive_once(connection, bytes);
      const auto stream = static_cast<std::uint32_t>(parent.hear());
      const auto streams = static_cast<std::uint32_t>(parent.hear());
      std::string reply;
      for (std::uint32_t i = 0; i < streams; ++i) {
        reply += frame(kHeaders, stream + 2 * i, 10);
      }
      if (!reply.empty()) {
        send_bytes(connection, reply);
      }
      parent.tell();
    }
  }

  Cgroup cgroup_;
  Child server_;
  UniqueFd client_;
  std::optional<Running> tacho_;
};

}  // namespace

TEST_CASE("an HTTP/2 connection that is older than tacho is followed from the next request on") {
  const auto http2 = GENERATE(Http2::on, Http2::automatic);
  CAPTURE(http2);
  Older older(http2);
  std::uint32_t stream = 3;
  for (; stream < 3 + 2 * kTimes; stream += 2) {
    older.say(frame(kHeaders, stream, 10), stream, 1);
  }
  for (std::uint32_t i = 0; i < kTimes; ++i, stream += 6) {
    older.say(frame(kHeaders, stream, 10) + frame(kData, stream, 700) + frame(kHeaders, stream + 2, 20) +
                  frame(kHeaders, stream + 4, 30),
              stream, 3);
  }
  CHECK(older.value("tacho_requests_total") == 4 * kTimes);
  CHECK(older.value("tacho_requests_in_flight") == 0);
  CHECK(older.lost() == 0);
}

TEST_CASE("an older HTTP/2 connection is followed however long it says no more than that it lives") {
  Older older(Http2::automatic);
  for (std::uint32_t i = 0; i < kTimes; ++i) {
    older.say(frame(kPing, 0, 8), 0, 0);
    older.say(frame(kWindowUpdate, 0, 4) + frame(kPing, 0, 8), 0, 0);
  }
  for (std::uint32_t stream = 3; stream < 3 + 4 * kTimes; stream += 4) {
    older.say(frame(kWindowUpdate, 0, 4) + frame(kHeaders, stream, 10) + frame(kHeaders, stream + 2, 10), stream, 2);
  }
  CHECK(older.value("tacho_requests_total") == 2 * kTimes);
  CHECK(older.value("tacho_requests_in_flight") == 0);
  CHECK(older.lost() == 0);
}

TEST_CASE("an older connection of another protocol that looks like HTTP/2 is counted by turns") {
  // A stream that no client opens; more or less behind the header than it says, or nothing at all.
  const std::string request =
      GENERATE(frame(kHeaders, 2, 10), frame(kHeaders, 3, 10) + "x", frame(kHeaders, 3, 10) + std::string(20, 'x'),
               frame(kHeaders, 3, 100).substr(0, 60), frame(kHeaders, 3, 0), frame(kData, 3, 10),
               frame(kHeaders, 0x80000003, 10), std::string(30, '\0'));
  CAPTURE(request);
  Older older(Http2::automatic);
  for (std::uint32_t i = 0; i < kTimes; ++i) {
    older.say(request, 2, 1);
  }
  CHECK(older.value("tacho_requests_total") == kTimes);
  CHECK(older.value("tacho_requests_in_flight") == 0);
  CHECK(older.lost() == 0);
}
