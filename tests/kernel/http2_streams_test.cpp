// Streams of HTTP/2: how many are open at a time, and for how long.

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "kernel/support/child.h"
#include "kernel/support/frames.h"
#include "kernel/support/running.h"
#include "kernel/support/wire.h"

using tacho::UniqueFd;
using namespace tacho::kernel_test;

namespace {

/// As many streams are distinguished (HTTP2_STREAMS).
constexpr std::uint32_t kDistinguished = 240;

/// One frame of HEADERS, by the client on its n-th stream, or by the server.
struct Step {
  bool answers;
  std::uint32_t n;
};

Step asks(std::uint32_t n) {
  return {.answers = false, .n = n};
}
Step answers(std::uint32_t n) {
  return {.answers = true, .n = n};
}

/// What was counted of a connection when all its steps were gone.
struct Counted {
  double requests;
  double unanswered;
  double in_flight;
  double lost;
};

Counted counted(const std::vector<Step>& steps) {
  const std::string preface = kPreface + frame(kSettings, 0, 0);
  const auto text = [](const Step& step) { return frame(kHeaders, 2 * step.n + 1, 10); };
  const Watched where;
  const auto lost = [] {
    return shared().page().value("tacho_lost_events_total", {{"probe", "socket"}, {"reason", "http2_stream"}});
  };
  const double lost_before = lost();
  Child server(where.directory(), [&](Line& parent) {
    const UniqueFd listener = listen_tcp();
    parent.tell(port_of(listener));
    const UniqueFd connection = accept_from(listener);
    receive_once(connection, preface.size());
    for (const Step& step : steps) {
      if (step.answers) {
        send_bytes(connection, text(step));
      } else {
        receive_once(connection, text(step).size());
      }
    }
    parent.tell();
    (void)parent.hear();
  });
  const UniqueFd client = connect_tcp(static_cast<std::uint16_t>(server.hear()));
  send_bytes(client, preface);
  for (const Step& step : steps) {
    if (step.answers) {
      receive_once(client, text(step).size());
    } else {
      send_bytes(client, text(step));
    }
  }
  (void)server.hear();
  const Counted found{.requests = where.value("tacho_requests_total"),
                      .unanswered = where.value("tacho_requests_unanswered_total"),
                      .in_flight = where.value("tacho_requests_in_flight"),
                      .lost = lost() - lost_before};
  server.tell();
  server.finish();
  return found;
}

}  // namespace

TEST_CASE("a stream of HTTP/2 that is open while hundreds of others come and go is one request") {
  constexpr std::uint32_t kSlow = 3;
  constexpr std::uint32_t kQuick = 900;
  std::vector<Step> steps;
  for (std::uint32_t n = 0; n < kSlow; ++n) {
    steps.push_back(asks(n));
  }
  for (std::uint32_t n = kSlow; n < kSlow + kQuick; ++n) {
    steps.push_back(asks(n));
    steps.push_back(answers(n));
    steps.push_back(answers(n));  // trailers
  }
  const Counted open = counted(steps);
  CHECK(open.requests == kQuick);
  CHECK(open.in_flight == kSlow);
  CHECK(open.unanswered == 0);
  CHECK(open.lost == 0);
  for (std::uint32_t n = 0; n < kSlow; ++n) {
    steps.push_back(answers(n));
  }
  const Counted ended = counted(steps);
  CHECK(ended.requests == kQuick + kSlow);
  CHECK(ended.in_flight == 0);
  CHECK(ended.unanswered == 0);
  CHECK(ended.lost == 0);
}

TEST_CASE("as many streams of HTTP/2 as servers allow are open at a time, and answered in any order") {
  std::vector<std::uint32_t> open;
  std::mt19937 random(1);
  std::vector<Step> steps;
  std::uint32_t begun = 0;
  for (int round = 0; round < 3000; ++round) {
    // Mostly full, at times empty.
    const bool filling = round % 1000 < 900;
    if (open.empty() || (filling ? open.size() < kDistinguished : random() % 4 == 0)) {
      steps.push_back(asks(begun));
      open.push_back(begun++);
    } else {
      std::swap(open[random() % open.size()], open.back());
      steps.push_back(answers(open.back()));
      open.pop_back();
    }
  }
  const Counted found = counted(steps);
  const auto left = static_cast<double>(open.size());
  CHECK(found.requests == begun - left);
  CHECK(found.in_flight == left);
  CHECK(found.unanswered == 0);
  CHECK(found.lost == 0);
}

TEST_CASE("of more streams of HTTP/2 than can be distinguished each further one costs another, which is told") {
  constexpr std::uint32_t kMore = 7;
  std::vector<Step> steps;
  for (std::uint32_t n = 0; n < kDistinguished + kMore; ++n) {
    steps.push_back(asks(n));
  }
  for (std::uint32_t n = 0; n < kDistinguished + kMore; ++n) {
    steps.push_back(answers(n));
  }
  const Counted found = counted(steps);
  CHECK(found.requests == kDistinguished);
  CHECK(found.unanswered == kMore);
  CHECK(found.in_flight == 0);
  CHECK(found.lost == kMore);
}
