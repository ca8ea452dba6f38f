#include "targets/target_table.h"

#include <catch2/catch.hpp>
#include <map>
#include <string>
#include <vector>

#include "recorder.h"

using tacho::targets::Target;
using tacho::targets::TargetTable;
using namespace tacho::targets::test;

TEST_CASE("targets get dense indices from 1 and an epoch above 0") {
  TargetTable table(4);
  Recorder recorder;
  const auto changes = table.apply({wanted("a", 10), wanted("b", 20)}, at(0), recorder);
  CHECK(changes.added == 2);
  CHECK(changes.failures.empty());
  CHECK(table.indices() == 5);
  CHECK(table.live() == 2);
  CHECK(brief(table) == Lines{"a#1", "b#2"});
  CHECK(recorder.events == Lines{"+a", "+b"});
  for (const Target* target : table.all()) {
    CHECK(target->ref.epoch > 0);
  }
  CHECK(table.cgroups().at(20).index == 2);
}

TEST_CASE("a target that is still wanted stays where it is and takes what is new about it") {
  TargetTable table(4);
  Recorder recorder;
  table.apply({wanted("a", 10), wanted("b", 20)}, at(0), recorder);
  auto grown = wanted("b", 21);
  grown.settings.ports = {80};
  const auto changes = table.apply({grown, wanted("a", 10)}, at(1), recorder);
  CHECK(changes.added == 0);
  CHECK(changes.ended == 0);
  CHECK(brief(table) == Lines{"a#1", "b#2"});
  CHECK(table.all()[1]->wanted.settings.ports == std::vector<std::uint16_t>{80});
  CHECK(table.cgroups().contains(21));
  CHECK_FALSE(table.cgroups().contains(20));
  CHECK(recorder.events == Lines{"+a", "+b"});
}

TEST_CASE("a target that is no longer wanted ends, and waits for one scrape") {
  TargetTable table(4);
  Recorder recorder;
  table.apply({wanted("a", 10)}, at(0), recorder);
  CHECK(table.apply({}, at(1), recorder).ended == 1);
  CHECK(brief(table) == Lines{"(a#1)"});
  CHECK(table.live() == 0);
  CHECK(table.cgroups().empty());
  CHECK(table.apply({}, at(2), recorder).ended == 0);  // told once
  table.release_ended(kUnseen, at(60), recorder);
  CHECK(brief(table) == Lines{"(a#1)"});
  table.release_ended(kSeen, at(61), recorder);
  CHECK(brief(table).empty());
  CHECK(recorder.events == Lines{"+a"});  // it may come back
  table.release_ended(kUnseen, at(601), recorder);
  CHECK(recorder.events == Lines{"+a"});
  table.release_ended(kUnseen, at(602), recorder);
  CHECK(recorder.events == Lines{"+a", "-a"});
}

TEST_CASE("a scrape does not take away who is live") {
  TargetTable table(4);
  Recorder recorder;
  table.apply({wanted("a", 10)}, at(0), recorder);
  table.release_ended(kSeen, at(3'600), recorder);
  CHECK(brief(table) == Lines{"a#1"});
}

TEST_CASE("a target that nobody scrapes is given up after five minutes") {
  TargetTable table(4);
  Recorder recorder;
  table.apply({wanted("a", 10)}, at(0), recorder);
  table.apply({}, at(100), recorder);
  table.release_ended(kUnseen, at(400), recorder);
  CHECK(brief(table) == Lines{"(a#1)"});
  table.release_ended(kUnseen, at(401), recorder);
  CHECK(brief(table).empty());
}

TEST_CASE("a target that comes back under the same labels goes on where it was") {
  TargetTable table(4);
  Recorder recorder;
  table.apply({wanted("a", 10)}, at(0), recorder);
  const auto before = table.all()[0]->ref;
  table.apply({}, at(1), recorder);
  const auto changes = table.apply({wanted("a", 11)}, at(2), recorder);
  CHECK(changes.added == 0);
  CHECK(table.all()[0]->ref.index == before.index);
  CHECK(table.all()[0]->ref.epoch == before.epoch);
  CHECK(brief(table) == Lines{"a#1"});
  CHECK(table.cgroups().contains(11));
  table.release_ended(kSeen, at(3), recorder);
  CHECK(brief(table) == Lines{"a#1"});
  CHECK(recorder.events == Lines{"+a"});
}

TEST_CASE("a target that comes back after its last values were scraped goes on where it was") {
  TargetTable table(4);
  Recorder recorder;
  table.apply({wanted("a", 10)}, at(0), recorder);
  const auto before = table.all()[0]->ref;
  table.apply({}, at(1), recorder);
  table.release_ended(kSeen, at(2), recorder);
  REQUIRE(brief(table).empty());
  CHECK(table.live() == 0);
  const auto changes = table.apply({wanted("a", 11)}, at(400), recorder);
  CHECK(changes.added == 0);
  CHECK(brief(table) == Lines{"a#1"});
  CHECK(table.all()[0]->ref.epoch == before.epoch);
  CHECK(table.cgroups().contains(11));
  table.release_ended(kSeen, at(4'000), recorder);
  CHECK(recorder.events == Lines{"+a"});
}

TEST_CASE("of the targets that are gone the last 32 may come back") {
  TargetTable table(100);
  Recorder recorder;
  for (int number = 0; number < 40; ++number) {
    table.apply({wanted("t" + std::to_string(number), 10)}, at(number), recorder);
    table.release_ended(kSeen, at(number), recorder);
  }
  table.apply({}, at(40), recorder);
  table.release_ended(kSeen, at(40), recorder);
  CHECK(brief(table).empty());
  Lines removed;
  for (const std::string& event : recorder.events) {
    if (event.starts_with("-")) {
      removed.push_back(event);
    }
  }
  CHECK(removed == Lines{"-t0", "-t1", "-t2", "-t3", "-t4", "-t5", "-t6", "-t7"});
}

TEST_CASE("an index that is used again has another epoch each time") {
  TargetTable table(1);
  Recorder recorder;
  std::vector<std::uint32_t> epochs;
  for (const char* name : {"a", "b", "a", "c"}) {
    table.apply({wanted(name, 10)}, at(0), recorder);
    REQUIRE(table.all().size() == 1);
    CHECK(table.all()[0]->ref.index == 1);
    epochs.push_back(table.all()[0]->ref.epoch);
    table.apply({}, at(1), recorder);
    table.release_ended(kSeen, at(1), recorder);
  }
  CHECK(epochs[0] < epochs[1]);
  CHECK(epochs[1] < epochs[2]);
  CHECK(epochs[2] < epochs[3]);
}

TEST_CASE("the same labels twice are one target with the members of both") {
  TargetTable table(4);
  Recorder recorder;
  auto second = wanted("a", 20);
  second.processes = {7};
  for (const int round : {0, 1}) {
    CAPTURE(round);
    const auto changes = table.apply({wanted("a", 10), second}, at(round), recorder);
    CHECK(changes.added == (round == 0 ? 1 : 0));
    CHECK(brief(table) == Lines{"a#1"});
    CHECK(table.cgroups().size() == 2);
    CHECK(table.processes().size() == 1);
  }
  CHECK(recorder.events == Lines{"+a"});
}

TEST_CASE("labels decide who a target is, not its name") {
  TargetTable table(4);
  Recorder recorder;
  auto left = wanted("a", 10);
  auto right = wanted("a", 20);
  left.labels.emplace_back("cgroup", "/x");
  right.labels.emplace_back("cgroup", "/y");
  table.apply({left, right}, at(0), recorder);
  CHECK(brief(table) == Lines{"a#1", "a#2"});
}

TEST_CASE("a member that two targets claim belongs to one of them") {
  TargetTable table(4);
  Recorder recorder;
  table.apply({wanted("a", 10), wanted("b", 10)}, at(0), recorder);
  const auto cgroups = table.cgroups();
  REQUIRE(cgroups.size() == 1);
  CHECK(cgroups.at(10).index == 1);
}

TEST_CASE("new targets are added in pieces, those that stay and those that end at once") {
  TargetTable table(8);
  Recorder recorder;
  table.apply({wanted("stays", 1), wanted("ends", 2)}, at(0), recorder);
  auto changes =
      table.apply({wanted("a", 10), wanted("stays", 1), wanted("b", 20), wanted("c", 30)}, at(1), recorder, 2);
  CHECK(changes.added == 2);
  CHECK(changes.ended == 1);
  CHECK(table.has_waiting());
  CHECK(brief(table) == Lines{"stays#1", "(ends#2)", "a#3", "b#4"});
  changes = table.add_waiting(at(1), recorder, 2);
  CHECK(changes.added == 1);
  CHECK_FALSE(table.has_waiting());
  CHECK(table.cgroups().at(30).index == 5);
  SECTION("who waits when another plan is made is asked for by that one") {
    table.apply({wanted("d", 40), wanted("e", 50)}, at(2), recorder, 1);
    CHECK(table.apply({wanted("d", 40)}, at(3), recorder).added == 0);
    CHECK_FALSE(table.has_waiting());
  }
}

TEST_CASE("the place of a target is not given away in the plan in which it ends") {
  TargetTable table(1);
  Recorder recorder;
  table.apply({wanted("a", 10)}, at(0), recorder);
  auto changes = table.apply({wanted("b", 10)}, at(1), recorder);
  CHECK(changes.postponed);
  CHECK(changes.added == 0);
  CHECK(table.overflowed() == 0);
  CHECK(recorder.events == Lines{"+a"});
  changes = table.apply({wanted("b", 10)}, at(2), recorder);
  CHECK_FALSE(changes.postponed);
  CHECK(recorder.events == Lines{"+a", "-a", "+b"});
}

TEST_CASE("what could not be added is counted each time") {
  TargetTable table(4);
  Recorder recorder;
  recorder.refused = {"a"};
  table.apply({wanted("a", 10), wanted("b", 20)}, at(0), recorder);
  table.apply({wanted("a", 10), wanted("b", 20)}, at(1), recorder);
  CHECK(table.shortfalls().failed == 2);
  CHECK(brief(table) == Lines{"b#1"});
}

TEST_CASE("vacant places are those without a target, the lowest first") {
  TargetTable table(4);
  Recorder recorder;
  CHECK(table.vacant(2) == std::vector<std::uint32_t>{1, 2});
  table.apply({wanted("a", 10), wanted("b", 20)}, at(0), recorder);
  CHECK(table.vacant(9) == std::vector<std::uint32_t>{3, 4});
  table.apply({wanted("b", 20)}, at(1), recorder);
  CHECK(table.vacant(9) == std::vector<std::uint32_t>{3, 4});  // it rests there
}

TEST_CASE("a target is there for others once the kernel knows its members") {
  TargetTable table(4);
  Recorder recorder;
  table.apply({wanted("a", 10)}, at(0), recorder);
  CHECK(table.targets().empty());
  CHECK(table.all().size() == 1);
  CHECK(table.cgroups().contains(10));
  table.all_count();
  CHECK(table.targets().size() == 1);
  table.apply({wanted("a", 10), wanted("b", 20)}, at(1), recorder);
  CHECK(table.targets().size() == 1);
  CHECK_FALSE(table.all().back()->counts);
}
