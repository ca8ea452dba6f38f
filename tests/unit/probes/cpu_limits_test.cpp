#include "probes/cpu_limits.h"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <string>

#include "unit/targets/temp_tree.h"

using namespace tacho::probes;

namespace {

constexpr std::int64_t kTenSeconds = 10'000'000'000;

/// As Linux 6.12 writes it.
std::string stat_v2(std::uint64_t throttled_us) {
  return "usage_usec 9876543\nuser_usec 8000000\nsystem_usec 1876543\ncore_sched.force_idle_usec 0\nnr_periods 812\n"
         "nr_throttled 77\nthrottled_usec " +
         std::to_string(throttled_us) + "\nnr_bursts 0\nburst_usec 0\n";
}

double online() {
  return static_cast<double>(::sysconf(_SC_NPROCESSORS_ONLN));
}

}  // namespace

TEST_CASE("cpu.max is a quota over a period, or none") {
  CHECK(parse_cpu_max("150000 100000\n") == 1.5);
  CHECK(parse_cpu_max("5000 100000\n") == 0.05);
  CHECK(parse_cpu_max("400000 50000\n") == 8);
  for (const char* none : {"max 100000\n", "", "\n", "garbage", "100000", "100000 \n", "100000 0\n", "0 100000\n"}) {
    CAPTURE(none);
    CHECK_FALSE(parse_cpu_max(none));
  }
}

TEST_CASE("v1 has the quota and the period in files of their own, and -1 for none") {
  CHECK(parse_cfs_quota("50000\n", "100000\n") == 0.5);
  CHECK_FALSE(parse_cfs_quota("-1\n", "100000\n"));
  CHECK_FALSE(parse_cfs_quota("", ""));
  CHECK_FALSE(parse_cfs_quota("50000\n", ""));
}

TEST_CASE("a list of CPUs is counted") {
  CHECK(parse_cpu_list("0\n") == 1);
  CHECK(parse_cpu_list("0-3\n") == 4);
  CHECK(parse_cpu_list("0-1,4,6-7\n") == 5);
  CHECK(parse_cpu_list("0-127") == 128);
  for (const char* none : {"", "\n", "3-1\n", "0-\n", "0,,1\n", "x\n", "0 1\n"}) {
    CAPTURE(none);
    CHECK_FALSE(parse_cpu_list(none));
  }
}

TEST_CASE("CPUs that cannot be are left out of a set") {
  constexpr std::uint64_t kAll = ~0ULL;
  const auto kept = [](std::size_t end) {
    CpuSet cpus{kAll, kAll, kAll, kAll};
    keep_below(cpus, end);
    return cpus;
  };
  CHECK(kept(2) == CpuSet{3, 0, 0, 0});
  CHECK(kept(64) == CpuSet{kAll, 0, 0, 0});
  CHECK(kept(65) == CpuSet{kAll, 1, 0, 0});
  CHECK(count(kept(256)) == 256);
  CHECK(count(kept(1000)) == 256);
  CHECK(count(kept(0)) == 0);
}

TEST_CASE("throttled time is found in both versions of cpu.stat") {
  CHECK(parse_throttled(stat_v2(1234)) == 1'234'000);
  CHECK(parse_throttled("nr_periods 5\nnr_throttled 2\nthrottled_time 987654321\nnr_bursts 0\nburst_time 0\n") ==
        987'654'321);
  // The root's, and a group's without the controller.
  CHECK_FALSE(parse_throttled("usage_usec 9876543\nuser_usec 8000000\nsystem_usec 1876543\n"));
  CHECK_FALSE(parse_throttled("not_throttled_usec 5\n"));
  CHECK_FALSE(parse_throttled(""));
}

TEST_CASE("the least of all quotas on the way up counts, and the cpuset") {
  const TempTree tree;
  (void)tree.file("cpuset.cpus.effective", "0-7\n");
  (void)tree.file("pod/cpu.max", "300000 100000\n");
  (void)tree.file("pod/cpuset.cpus.effective", "0-1\n");
  (void)tree.file("pod/small/cpu.max", "50000 100000\n");
  (void)tree.file("pod/free/cpu.max", "max 100000\n");
  (void)tree.directory("pod/bare");
  const CpuHierarchies v2{.v2 = tree.path(), .cpu_v1 = "", .cpuset_v1 = "", .freezer_v1 = ""};
  CHECK(cgroup_cpu_limit(v2, "/pod/small") == 0.5);
  CHECK(cgroup_cpu_limit(v2, "/pod/free") == 2);
  CHECK(cgroup_cpu_limit(v2, "/pod/bare") == 2);
  CHECK(cgroup_cpu_limit(v2, "/elsewhere") == 8);
  CHECK(cgroup_cpu_limit(v2, "/") == 8);
  CHECK_FALSE(cgroup_cpu_limit({.v2 = tree.path() + "/none", .cpu_v1 = "", .cpuset_v1 = "", .freezer_v1 = ""}, "/pod"));
}

TEST_CASE("controllers of v1 are asked in their own hierarchies, by the nearest group that is there") {
  const TempTree tree;
  (void)tree.file("cpu/cpu.cfs_quota_us", "-1\n");
  (void)tree.file("cpu/cpu.cfs_period_us", "100000\n");
  (void)tree.file("cpu/slice/cpu.cfs_quota_us", "250000\n");
  (void)tree.file("cpu/slice/cpu.cfs_period_us", "100000\n");
  (void)tree.file("cpu/slice/cpu.stat", "nr_periods 1\nnr_throttled 1\nthrottled_time 42\n");
  (void)tree.file("cpuset/cpuset.effective_cpus", "0-63\n");
  (void)tree.file("unified/slice/service/cpu.max", "10000 100000\n");  // not its hierarchy
  const CpuHierarchies hybrid{.v2 = tree.path() + "/unified",
                              .cpu_v1 = tree.path() + "/cpu",
                              .cpuset_v1 = tree.path() + "/cpuset",
                              .freezer_v1 = ""};
  CHECK(cgroup_cpu_limit(hybrid, "/slice/service") == 2.5);
  CHECK(cgroup_cpu_limit(hybrid, "/other") == 64);
  CHECK(cgroup_throttled(hybrid, "/slice") == 42);
  CHECK_FALSE(cgroup_throttled(hybrid, "/slice/service"));
}

TEST_CASE("threads that may run anywhere are not limited to the CPUs that a set tells apart") {
  CHECK(usable_cpus(256, 384) == 384);
  CHECK(usable_cpus(256, 8) == 8);
  CHECK(usable_cpus(255, 384) == 255);
  CHECK(usable_cpus(0, 384) == 384);
  CHECK(usable_cpus(4, 2) == 2);
}

TEST_CASE("without a cgroup the machine and the threads' affinity are the limit") {
  CpuLimits limits;
  limits.update({}, {}, 1);
  CHECK(limits.allowance().cores == online());
  CHECK(limits.allowance().throttled_ns == 0);
  limits.update({}, {.cpus = {0b1000, 0, 0, 0}, .quota = 0, .ran = true}, 2);
  CHECK(limits.allowance().cores == 1);
  // Nothing new about the threads: they may still use what they might.
  limits.update({}, {}, 3);
  CHECK(limits.allowance().cores == 1);
  limits.update({}, {.cpus = {~0ULL, ~0ULL, ~0ULL, ~0ULL}, .quota = 0, .ran = true}, 4);
  CHECK(limits.allowance().cores == online());
}

TEST_CASE("the quota that the kernel tells of the threads is a limit, too, also without a cgroup's files") {
  constexpr std::uint64_t kCpu = 1ULL << TACHO_QUOTA_SHIFT;
  CpuLimits limits;
  limits.update({}, {.cpus = {}, .quota = kCpu / 4, .ran = true}, 1);
  CHECK(limits.allowance().cores == 0.25);
  limits.update({}, {}, 2);  // no thread has run: what was said last holds
  CHECK(limits.allowance().cores == 0.25);
  limits.update({}, {.cpus = {}, .quota = TACHO_NO_QUOTA, .ran = true}, 3);
  CHECK(limits.allowance().cores == online());
  limits.update({}, {.cpus = {0b1, 0, 0, 0}, .quota = 3 * kCpu, .ran = true}, 4);
  CHECK(limits.allowance().cores == 1);
}

TEST_CASE("throttled time counts from the first look, each time if there is a quota, and never falls") {
  const TempTree tree;
  const CpuHierarchies v2{.v2 = tree.path(), .cpu_v1 = "", .cpuset_v1 = "", .freezer_v1 = ""};
  (void)tree.file("web/cpu.max", "50000 100000\n");
  (void)tree.file("web/cpu.stat", stat_v2(1'000'000));
  CpuLimits limits;
  limits.locate("/web");
  std::int64_t now = 1;
  limits.update(v2, {}, now);
  CHECK(limits.allowance().cores == 0.5);
  CHECK(limits.allowance().throttled_ns == 0);
  (void)tree.file("web/cpu.stat", stat_v2(1'250'000));
  limits.update(v2, {}, ++now);
  CHECK(limits.allowance().throttled_ns == 250'000'000);
  // A container that comes back under the same labels has a new cgroup, and goes on counting.
  (void)tree.file("again/cpu.max", "max 100000\n");
  (void)tree.file("again/cpu.stat", stat_v2(10));
  limits.locate("/again");
  limits.update(v2, {}, ++now);
  CHECK(limits.allowance().throttled_ns == 250'000'000);
  CHECK(limits.allowance().cores == std::min(online(), 64.0));
}

TEST_CASE("a quota that is set later is seen within ten seconds") {
  const TempTree tree;
  const CpuHierarchies v2{.v2 = tree.path(), .cpu_v1 = "", .cpuset_v1 = "", .freezer_v1 = ""};
  (void)tree.file("web/cpu.max", "max 100000\n");
  CpuLimits limits;
  limits.locate("/web");
  limits.update(v2, {}, 1);
  CHECK(limits.allowance().cores == online());
  (void)tree.file("web/cpu.max", "25000 100000\n");
  limits.update(v2, {}, 1 + kTenSeconds);
  CHECK(limits.allowance().cores == 0.25);
}

TEST_CASE("a cgroup is frozen if v2 or the v1 controller says so, and nothing is said without a file") {
  const TempTree tree;
  (void)tree.file("v2/web/cgroup.events", "populated 1\nfrozen 0\n");
  (void)tree.file("v2/paused/cgroup.events", "populated 1\nfrozen 1\n");
  (void)tree.file("v2/old/cgroup.events", "populated 1\n");  // before Linux 5.2
  (void)tree.file("freezer/web/freezer.state", "FROZEN\n");
  (void)tree.file("freezer/paused/freezer.state", "THAWED\n");
  CpuHierarchies hierarchies{.v2 = tree.path() + "/v2", .cpu_v1 = "", .cpuset_v1 = "", .freezer_v1 = ""};
  CHECK(cgroup_frozen(hierarchies, "/web") == false);
  CHECK(cgroup_frozen(hierarchies, "/paused") == true);
  CHECK_FALSE(cgroup_frozen(hierarchies, "/old").has_value());
  CHECK_FALSE(cgroup_frozen(hierarchies, "/none").has_value());
  hierarchies.freezer_v1 = tree.path() + "/freezer";
  CHECK(cgroup_frozen(hierarchies, "/web") == true);
  CHECK(cgroup_frozen(hierarchies, "/paused") == true);
}

TEST_CASE("whether a cgroup is frozen is read again only while it does not run") {
  const TempTree tree;
  (void)tree.file("web/cgroup.events", "populated 1\nfrozen 0\n");
  const CpuHierarchies v2{.v2 = tree.path(), .cpu_v1 = "", .cpuset_v1 = "", .freezer_v1 = ""};
  const ThreadLimits running{.cpus = {}, .quota = 0, .ran = true};
  constexpr std::int64_t kFiveSeconds = 5'000'000'000;
  CpuLimits limits;
  CHECK_FALSE(limits.allowance().frozen.has_value());
  limits.update(v2, {}, 1);
  CHECK_FALSE(limits.allowance().frozen.has_value());  // it has no cgroup
  limits.locate("/web");
  limits.update(v2, {}, 2);
  CHECK(limits.allowance().frozen == false);
  (void)tree.file("web/cgroup.events", "populated 1\nfrozen 1\n");
  limits.update(v2, running, 3 + kFiveSeconds);
  CHECK(limits.allowance().frozen == false);
  limits.update(v2, {}, 4 + kFiveSeconds);
  CHECK(limits.allowance().frozen == true);
  (void)tree.file("web/cgroup.events", "populated 1\nfrozen 0\n");
  limits.update(v2, {}, 5 + kFiveSeconds);
  CHECK(limits.allowance().frozen == false);
}
