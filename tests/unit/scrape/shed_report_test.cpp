#include "scrape/shed_report.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "bpf/socket.h"

using namespace tacho::scrape;
using tacho::probes::TargetSample;

namespace {

TargetSample of_probes(std::uint64_t socket_ns, std::uint64_t poll_ns, std::uint64_t sched_ns) {
  TargetSample sample;
  sample.socket.emplace().own_ns = socket_ns;
  sample.poll.emplace().own_ns = poll_ns;
  sample.sched.emplace().own_ns = sched_ns;
  return sample;
}

}  // namespace

TEST_CASE("the cost of a step is what all probes took since the last one") {
  TargetSample older = of_probes(10, 20, 30);
  TargetSample newer = of_probes(11, 22, 33);
  older.sched->counters.running_ns = 100;
  newer.sched->counters.running_ns = 150;
  const ShedInput input = shed_input(shed_seen(older), shed_seen(newer));
  CHECK(input.own_ns == 6);
  CHECK(input.cpu_ns == 50U);
  // A probe that has begun anew.
  CHECK(shed_input(shed_seen(newer), shed_seen(older)).own_ns == 0);
  newer.sched.reset();
  CHECK_FALSE(shed_input(shed_seen(older), shed_seen(newer)).cpu_ns);
  CHECK(shed_input(shed_seen(older), shed_seen(newer)).own_ns == 3);
}

TEST_CASE("a level helps a target that uses what it does without") {
  const TargetSample older = of_probes(10, 20, 30);
  const auto helps = [&older](const TargetSample& newer) {
    std::vector<unsigned> levels;
    const ShedInput input = shed_input(shed_seen(older), shed_seen(newer));
    for (unsigned level = 0; level < TACHO_SHED_LEVELS; ++level) {
      if (input.helps.at(level)) {
        levels.push_back(level);
      }
    }
    return levels;
  };
  using Levels = std::vector<unsigned>;
  CHECK(helps(of_probes(10, 20, 31)).empty());
  CHECK(helps(of_probes(11, 20, 30)) == Levels{TACHO_SHED_INTERVALS});
  CHECK(helps(of_probes(10, 21, 30)) == Levels{TACHO_SHED_POLLS});
  TargetSample newer = older;
  newer.socket->anatomy.emplace();
  CHECK(helps(newer) == Levels{TACHO_SHED_ANATOMY});
  newer = older;
  newer.socket->followed = 1;
  CHECK(helps(newer) == Levels{TACHO_SHED_STREAMS});
  newer = older;
  newer.socket->server_connections = TACHO_CHOSEN_CONNECTIONS - 1;
  CHECK(helps(newer).empty());
  newer.socket->server_connections = TACHO_CHOSEN_CONNECTIONS;
  CHECK(helps(newer) == Levels{TACHO_SHED_SOCKETS});
  CHECK(helps({}).empty());
}

TEST_CASE("the log says what is done without, of a few targets by name") {
  std::vector<ShedNews> news{
      {.target = "redis", .before = TACHO_SHED_NOTHING, .now = TACHO_SHED_POLLS, .exhausted = false}};
  CHECK(shed_line(news) ==
        "limits of tacho's own cost: redis costs too much and is at level 2: without intervals, polls");
  news.push_back({.target = "web\n", .before = TACHO_SHED_POLLS, .now = TACHO_SHED_NOTHING, .exhausted = false});
  news.push_back({.target = "dns", .before = TACHO_SHED_ANATOMY, .now = TACHO_SHED_ANATOMY, .exhausted = true});
  const std::string line = shed_line(news);
  CHECK(line.find('\n') == std::string::npos);
  CHECK(line.find("costs less again and is at level 0: without nothing") != std::string::npos);
  CHECK(line.ends_with("; dns still costs too much at level 3"));
  news.resize(11, news.front());
  CHECK(shed_line(news).ends_with("; and 3 more targets"));
}
