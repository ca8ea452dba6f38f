#include "probes/slow_requests.h"

#include <arpa/inet.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <random>

using namespace tacho::probes;

namespace {

constexpr std::int64_t kMinute = SlowRequests::kMinuteNs;

request_record record(std::uint64_t duration, std::int64_t ended) {
  request_record made{};
  made.duration = duration;
  made.ended = static_cast<std::uint64_t>(ended);
  return made;
}

std::vector<std::uint64_t> durations(SlowRequests& slowest, std::int64_t now) {
  std::vector<std::uint64_t> list;
  for (const request_record& kept : slowest.slowest(now)) {
    list.push_back(kept.duration);
  }
  return list;
}

}  // namespace

TEST_CASE("of each minute the slowest requests are kept, in whatever order they come") {
  std::mt19937 random(1);
  std::vector<std::uint64_t> all(500);
  std::ranges::generate(all, [&random] { return random() % 1'000'000; });
  SlowRequests slowest;
  for (const std::uint64_t duration : all) {
    slowest.add(record(duration, kMinute + 5));
  }
  slowest.add(record(7, 2 * kMinute));
  std::ranges::sort(all, std::ranges::greater());
  all.resize(SlowRequests::kKept);
  CHECK(slowest.threshold(kMinute + 6) == all.back());
  CHECK(slowest.threshold(2 * kMinute) == 1);
  all.push_back(7);
  CHECK(durations(slowest, 2 * kMinute) == all);
}

TEST_CASE("what is minutes old is forgotten, also if nothing comes any more") {
  SlowRequests slowest;
  CHECK(durations(slowest, 0).empty());
  for (std::int64_t minute = 0; minute < 10; ++minute) {
    slowest.add(record(static_cast<std::uint64_t>(minute), minute * kMinute));
  }
  CHECK(durations(slowest, 9 * kMinute) == std::vector<std::uint64_t>{9, 8, 7, 6, 5, 4});
  // From a ring that was read late.
  slowest.add(record(100, 8 * kMinute + 1));
  slowest.add(record(200, 2 * kMinute));
  CHECK(durations(slowest, 9 * kMinute) == std::vector<std::uint64_t>{100, 9, 8, 7, 6, 5, 4});
  CHECK(durations(slowest, 14 * kMinute) == std::vector<std::uint64_t>{9});
  CHECK(durations(slowest, 15 * kMinute).empty());
}

TEST_CASE("a minute is as long as it is said to be") {
  SlowRequests slowest(1'000);
  slowest.add(record(5, 999));
  slowest.add(record(4, 1'000));
  CHECK(slowest.recent(1'999).size() == 2);
  CHECK(slowest.recent(2'000).size() == 1);
  CHECK(slowest.recent(3'000).empty());
}

TEST_CASE("an exemplar says what a request waited for most") {
  request_record made = record(1'000'000, 7);
  made.ns[TACHO_PART_CPU] = 170'000;
  made.ns[TACHO_PART_LOCK] = 830'000;
  const tacho::metrics::Exemplar told = exemplar(made);
  CHECK(told.ns == 1'000'000);
  CHECK(told.time_ns == 7);
  CHECK(told.labels == std::vector<std::pair<std::string_view, std::string>>{{"part", "lock"}, {"share", "0.83"}});
  made.ns[TACHO_PART_LOCK] = 0;
  for (std::size_t part = 0; part < TACHO_PARTS; ++part) {
    made.ns[part] = 1'000'000;
    std::size_t length = 0;
    for (const auto& [name, value] : exemplar(made).labels) {
      length += name.size() + value.size();
    }
    CHECK(length <= 128);  // OpenMetrics 1.0
    made.ns[part] = 0;
  }
  made.duration = 0;
  CHECK(exemplar(made).labels.back().second == "0.00");
}

TEST_CASE("records become what people read") {
  request_record made = record(2'000, 3);
  made.ns[TACHO_PART_SLEEP] = 1'500;
  made.mode = TACHO_SERVED_HANDED_OVER;
  made.thread = 42;
  std::ranges::fill(made.thread_name, 'x');  // as long as it may be: no NUL ends it
  made.bytes = 9;
  made.reply = 8;
  made.family = AF_INET;
  made.port = 4711;
  made.address[0] = 10;
  made.address[3] = 7;
  const PeerNames names;
  SlowRequest request = decode(made, names, nullptr);
  CHECK(request.ended_ns == 3);
  CHECK(request.duration_ns == 2'000);
  CHECK(request.parts_ns[TACHO_PART_SLEEP] == 1'500);
  CHECK(request.mode == "handed_over");
  CHECK(request.bytes == 9);
  CHECK(request.reply_bytes == 8);
  CHECK(request.thread_name == std::string(TACHO_THREAD_NAME, 'x'));
  CHECK(request.client == "10.0.0.7:4711");
  CHECK(request.longest_call_peer.empty());
  made.family = AF_INET6;
  made.address[15] = 1;
  made.calls = 2;
  made.calls_ns = 900;
  made.thread_name[1] = '\0';
  made.mode = 200;  // of no kernel program of ours
  peer_address peer{.family = AF_INET, .port = 5432, .address = {127, 0, 0, 1}};
  request = decode(made, names, &peer);
  CHECK(request.client == "[a00:7::1]:4711");
  CHECK(request.thread_name == "x");
  CHECK(request.mode == "unknown");
  CHECK(request.calls_ns == 900);
  CHECK(request.longest_call_peer == "127.0.0.1:5432");
  CHECK(decode(made, names, nullptr).longest_call_peer == "other");
  made.family = AF_UNIX;
  CHECK(decode(made, names, &peer).client.empty());
}
