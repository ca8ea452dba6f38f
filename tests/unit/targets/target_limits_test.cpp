#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "recorder.h"
#include "targets/target_table.h"

using tacho::targets::Target;
using tacho::targets::TargetTable;
using namespace tacho::targets::test;

TEST_CASE("targets beyond the limit go into one other and are counted once") {
  TargetTable table(2);
  Recorder recorder;
  const auto three = [] { return std::vector{wanted("a", 10), wanted("b", 20), wanted("c", 30), wanted("d", 40)}; };
  table.apply(three(), at(0), recorder);
  table.all_count();
  CHECK(brief(table) == Lines{"other#0", "a#1", "b#2"});
  CHECK(table.overflowed() == 2);
  CHECK(table.targets()[0]->wanted.labels == tacho::targets::Labels{{"target", "other"}});
  CHECK(table.cgroups().at(30).index == TargetTable::kOther);
  CHECK(table.cgroups().at(40).index == TargetTable::kOther);
  CHECK(table.cgroups().at(10).index == 1);
  CHECK(recorder.events == Lines{"+a", "+b", "+other"});

  table.apply(three(), at(1), recorder);
  CHECK(table.overflowed() == 2);
  CHECK(table.cgroups().size() == 4);
  CHECK(recorder.events == Lines{"+a", "+b", "+other"});
}

TEST_CASE("who left other is no longer in it") {
  TargetTable table(1);
  Recorder recorder;
  table.apply({wanted("a", 10), wanted("b", 20), wanted("c", 30)}, at(0), recorder);
  table.apply({wanted("a", 10), wanted("c", 30)}, at(1), recorder);
  CHECK_FALSE(table.cgroups().contains(20));
  CHECK(table.cgroups().at(30).index == TargetTable::kOther);
  CHECK(table.overflowed() == 2);
}

TEST_CASE("a place that becomes free goes to one of those in other") {
  TargetTable table(1);
  Recorder recorder;
  table.apply({wanted("a", 10), wanted("b", 20)}, at(0), recorder);
  table.apply({wanted("b", 20)}, at(1), recorder);
  CHECK(table.cgroups().at(20).index == TargetTable::kOther);  // until the kernel has forgotten a's members
  table.apply({wanted("b", 20)}, at(2), recorder);
  CHECK(brief(table) == Lines{"other#0", "b#1"});
  CHECK(table.cgroups().at(20).index == 1);
  CHECK(recorder.events == Lines{"+a", "+other", "-a", "+b"});
}

TEST_CASE("other stays once it is there: its counters must not go down") {
  TargetTable table(1);
  Recorder recorder;
  table.apply({wanted("a", 10), wanted("b", 20)}, at(0), recorder);
  table.apply({wanted("a", 10)}, at(1), recorder);
  table.release_ended(kSeen, at(2), recorder);
  CHECK(brief(table) == Lines{"other#0", "a#1"});
  CHECK(table.cgroups().size() == 1);
}

TEST_CASE("the place of the target that ended first is taken first, and only when no place is free") {
  TargetTable table(3);
  Recorder recorder;
  table.apply({wanted("a", 10), wanted("b", 20)}, at(0), recorder);
  table.apply({wanted("a", 10)}, at(1), recorder);
  table.apply({}, at(2), recorder);
  CHECK(brief(table) == Lines{"(a#1)", "(b#2)"});
  table.apply({wanted("c", 30)}, at(3), recorder);
  CHECK(brief(table) == Lines{"(a#1)", "(b#2)", "c#3"});
  table.apply({wanted("c", 30), wanted("d", 40)}, at(4), recorder);
  CHECK(brief(table) == Lines{"(a#1)", "d#2", "c#3"});
  table.apply({wanted("c", 30), wanted("d", 40), wanted("e", 50)}, at(5), recorder);
  CHECK(brief(table) == Lines{"e#1", "d#2", "c#3"});
  CHECK(recorder.events == Lines{"+a", "+b", "+c", "-b", "+d", "-a", "+e"});
  CHECK(table.overflowed() == 0);
}

TEST_CASE("the place of a target whose last values were scraped is taken before that of one that still waits") {
  TargetTable table(2);
  Recorder recorder;
  table.apply({wanted("a", 10), wanted("b", 20)}, at(0), recorder);
  table.apply({wanted("b", 20)}, at(1), recorder);
  table.release_ended(kSeen, at(2), recorder);
  table.apply({}, at(3), recorder);
  table.apply({wanted("c", 30)}, at(4), recorder);
  CHECK(brief(table) == Lines{"c#1", "(b#2)"});
  CHECK(recorder.events == Lines{"+a", "+b", "-a", "+c"});
}

TEST_CASE("a target that an observer refuses is a failure with its name and reason, and does not take a place") {
  TargetTable table(2);
  Recorder recorder;
  recorder.refused = {"a"};
  const auto changes = table.apply({wanted("a", 10), wanted("b", 20)}, at(0), recorder);
  CHECK(changes.failures == Lines{"target a: no memory"});
  CHECK(changes.added == 1);
  CHECK(brief(table) == Lines{"b#1"});
  CHECK_FALSE(table.cgroups().contains(10));
  recorder.refused.clear();
  CHECK(table.apply({wanted("a", 10), wanted("b", 20)}, at(1), recorder).added == 1);
  CHECK(brief(table) == Lines{"b#1", "a#2"});
}

TEST_CASE("an other that an observer refuses is a failure, its members are nobody's, and they are counted once") {
  TargetTable table(1);
  Recorder recorder;
  recorder.refused = {"other"};
  for (const int round : {0, 1}) {
    CAPTURE(round);
    const auto changes = table.apply({wanted("a", 10), wanted("b", 20)}, at(round), recorder);
    CHECK(changes.failures == Lines{"target other: no memory"});
    CHECK(brief(table) == Lines{"a#1"});
    CHECK_FALSE(table.cgroups().contains(20));
    CHECK(table.overflowed() == 1);
  }
}

TEST_CASE("with room for one target the table still works") {
  TargetTable table(1);
  Recorder recorder;
  CHECK(table.apply({}, at(0), recorder).added == 0);
  CHECK(table.targets().empty());
  CHECK(table.apply({wanted("a", 10)}, at(0), recorder).added == 1);
  CHECK(table.indices() == 2);
}

namespace {

using tacho::targets::DesiredTarget;
using tacho::targets::Rank;

DesiredTarget ranked(const std::string& name, std::uint64_t cgroup, Rank rank, const std::string& owner = "") {
  DesiredTarget target = wanted(name, cgroup);
  target.rank = rank;
  target.owner = owner;
  return target;
}

/// As discovery does: who takes another's place waits for the kernel to know.
void settle(TargetTable& table, const std::vector<DesiredTarget>& all, int second, Recorder& recorder) {
  table.apply(all, at(second), recorder);
  while (table.has_waiting()) {
    table.add_waiting(at(second), recorder, all.size());
  }
}

}  // namespace

TEST_CASE("a place that another gives up is given away once the kernel knows whose members those are") {
  TargetTable table(1);
  Recorder recorder;
  table.apply({ranked("l", 1, Rank::loose)}, at(0), recorder);
  const std::vector both{ranked("l", 1, Rank::loose), ranked("x", 2, Rank::configured)};
  CHECK(table.apply(both, at(1), recorder).added == 0);
  CHECK(table.cgroups().at(1).index == TargetTable::kOther);
  CHECK_FALSE(table.cgroups().contains(2));
  REQUIRE(table.has_waiting());
  const auto changes = table.add_waiting(at(1), recorder, 1);
  CHECK(changes.added == 1);
  CHECK(changes.came == Lines{"x"});
  CHECK_FALSE(table.has_waiting());
  CHECK(table.cgroups().at(2).index == 1);
  CHECK(recorder.events == Lines{"+l", "+other", "-l", "+x"});
}

TEST_CASE("who is configured, a container or a service comes before what anybody may start") {
  TargetTable table(3);
  Recorder recorder;
  table.apply({ranked("l", 1, Rank::loose), ranked("s", 2, Rank::service), ranked("c", 3, Rank::container),
               ranked("x", 4, Rank::configured)},
              at(0), recorder);
  CHECK(brief(table) == Lines{"other#0", "x#1", "c#2", "s#3"});
  CHECK(table.cgroups().at(1).index == TargetTable::kOther);
}

TEST_CASE("who comes later takes the place of a lower rank, rather that of one that never answered") {
  TargetTable table(3);
  Recorder recorder;
  recorder.busy = {"l3"};
  std::vector all{ranked("l1", 1, Rank::loose), ranked("s", 2, Rank::service), ranked("l3", 3, Rank::loose)};
  settle(table, all, 0, recorder);
  all.push_back(ranked("c", 4, Rank::container));
  settle(table, all, 1, recorder);
  CHECK(brief(table) == Lines{"other#0", "s#1", "c#2", "l3#3"});
  CHECK(table.cgroups().at(1).index == TargetTable::kOther);
  CHECK(table.overflowed() == 1);
  settle(table, all, 2, recorder);
  CHECK(brief(table) == Lines{"other#0", "s#1", "c#2", "l3#3"});
  CHECK(table.overflowed() == 1);
  all.push_back(ranked("x", 5, Rank::configured));
  settle(table, all, 3, recorder);
  CHECK(brief(table) == Lines{"other#0", "x#1", "c#2", "l3#3"});
  // Nobody gives way to an equal.
  all.push_back(ranked("x2", 6, Rank::loose));
  settle(table, all, 4, recorder);
  CHECK(table.cgroups().at(6).index == TargetTable::kOther);
}

TEST_CASE("an ordinary user has an eighth of the places at most, and not less for who comes later") {
  TargetTable table(256);
  Recorder recorder;
  std::vector<DesiredTarget> all;
  for (std::uint64_t i = 0; i < 260; ++i) {
    all.push_back(ranked("p" + std::to_string(i), 1000 + i, Rank::loose, "65534"));
  }
  settle(table, all, 0, recorder);
  CHECK(table.live() == 32 + 1);  // and other
  CHECK(table.overflowed() == 228);
  all.insert(all.begin(), ranked("late", 1, Rank::loose, "1000"));
  all.push_back(ranked("web", 2, Rank::service));
  settle(table, all, 1, recorder);
  CHECK(table.live() == 34 + 1);
  CHECK(table.cgroups().at(1).index != TargetTable::kOther);
  CHECK(table.cgroups().at(2).index != TargetTable::kOther);
  CHECK(table.cgroups().at(1000).index != TargetTable::kOther);
  CHECK(table.overflowed() == 228);
}

TEST_CASE("users who have taken all places give one to a user who has none") {
  TargetTable table(16);
  Recorder recorder;
  std::vector<DesiredTarget> all;
  for (std::uint64_t i = 0; i < 16; ++i) {
    all.push_back(ranked("p" + std::to_string(i), 1000 + i, Rank::loose, i < 8 ? "1" : "2"));
    recorder.busy.insert("p" + std::to_string(i));
  }
  settle(table, all, 0, recorder);
  all.push_back(ranked("late", 1, Rank::loose, "3"));
  settle(table, all, 1, recorder);
  CHECK(table.cgroups().at(1).index == TargetTable::kOther);  // all of them answer requests
  recorder.busy.erase("p5");
  settle(table, all, 2, recorder);
  CHECK(table.cgroups().at(1).index == 6);
  CHECK(table.cgroups().at(1005).index == TargetTable::kOther);
}
