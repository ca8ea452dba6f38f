#include "scrape/self_families.h"

#include <linux/capability.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <chrono>
#include <map>
#include <ranges>
#include <set>
#include <string>
#include <vector>

#include "base/version.h"
#include "scrape/process_metrics.h"
#include "scrape/self_metrics.h"
#include "targets/target_table.h"

namespace metrics = tacho::metrics;
namespace process = tacho::process;
using namespace tacho::scrape;

namespace {

class Silent final : public tacho::targets::TargetObserver {
 public:
  tacho::Result<void> target_added(const tacho::targets::Target&) override { return {}; }
  void target_removed(const tacho::targets::Target&) override {}
  [[nodiscard]] bool has_answered(const tacho::targets::Target&) const override { return true; }
  tacho::Result<void> targets_changed() override { return {}; }
  void targets_known() override {}
};

/// A table of one target with an identity and one label of its own.
tacho::targets::TargetTable one_target() {
  tacho::targets::TargetTable table(4);
  Silent observer;
  tacho::targets::DesiredTarget wanted{"web", {{"target", "web"}, {"team", "edge"}}, {7}, {}, {}, {}};
  wanted.identity = tacho::targets::identify("/system.slice/docker-" + std::string(64, 'a') + ".scope");
  wanted.container = {"", "", "web", "nginx:1.27", "shop", "front"};
  wanted.node = "node-1";
  table.apply({wanted}, {}, observer);
  table.all_count();
  return table;
}

std::vector<SelfFamily> metrics_of(const tacho::targets::TargetTable& table) {
  std::vector<const tacho::targets::DesiredTarget*> reported;
  for (const tacho::targets::Target* target : table.targets()) {
    reported.push_back(&target->wanted);
  }
  return target_metrics(reported, {.live = table.live(), .overflowed = table.overflowed(), .shortfalls = {}});
}

std::vector<SelfFamily> all_families() {
  std::vector<SelfFamily> all;
  const auto append = [&all](std::vector<SelfFamily> some) {
    all.insert(all.end(), std::make_move_iterator(some.begin()), std::make_move_iterator(some.end()));
  };
  const std::array<std::string, 1> failed{"poll"};
  const std::array<CollectorResult, 1> collectors{{{.collector = "socket", .seconds = 0.5, .success = false}}};
  append(program_metrics({.successful = false, .success_time = 12}));
  append(metrics_of(one_target()));
  append(object_metrics({}, failed, true));
  append(collector_metrics(collectors));
  append(web_metrics({.open = 1, .accepted = 2, .lost = {{"busy", 3}}}));
  const std::array<process::Rights, 2> rights{
      process::Rights{.process = "collector", .capabilities = process::capability_bit(CAP_BPF), .lacks = {}},
      process::Rights{.process = "web", .lacks = {}}};
  append(rights_metrics(rights));
  append(process_metrics());
  return all;
}

const SelfFamily& family(const std::vector<SelfFamily>& all, const std::string& name) {
  const auto found = std::ranges::find(all, name, [](const SelfFamily& one) { return one.family->name; });
  INFO("no family " << name);
  REQUIRE(found != all.end());
  return *found;
}

std::string label(const metrics::LabelledValue& sample, const std::string& name) {
  const auto found = std::ranges::find(sample.labels, name, &metrics::Labels::value_type::first);
  return found == sample.labels.end() ? "(none)" : found->second;
}

double value(const SelfFamily& family) {
  REQUIRE(family.samples.size() == 1);
  return family.samples[0].value.real;
}

}  // namespace

TEST_CASE("the families about itself that are documented are those that are emitted") {
  std::set<std::string> documented;
  std::set<std::string> emitted;
  for (const metrics::Family& one : kSelfFamilies) {
    CHECK(documented.emplace(one.name).second);
  }
  for (const SelfFamily& one : all_families()) {
    CAPTURE(one.family->name);
    CHECK(emitted.emplace(one.family->name).second);
  }
  CHECK(emitted == documented);
}

TEST_CASE("what a process holds is told, and that it does not hold what could load programs") {
  const std::array<process::Rights, 2> rights{
      process::Rights{.process = "collector",
                      .capabilities = process::capability_bit(CAP_BPF) | process::capability_bit(CAP_SYS_PTRACE),
                      .lacks = {}},
      process::Rights{.process = "web", .lacks = {}}};
  const SelfFamily told = rights_metrics(rights).front();
  std::map<std::pair<std::string, std::string>, double> samples;
  for (const auto& sample : told.samples) {
    samples[{label(sample, "process"), label(sample, "capability")}] = sample.value.real;
  }
  const std::map<std::pair<std::string, std::string>, double> expected{{{"collector", "bpf"}, 1},
                                                                       {{"collector", "perfmon"}, 0},
                                                                       {{"collector", "sys_ptrace"}, 1},
                                                                       {{"web", "bpf"}, 0},
                                                                       {{"web", "perfmon"}, 0}};
  CHECK(samples == expected);
}

TEST_CASE("families about itself are named by the rules and explained") {
  for (const metrics::Family& one : kSelfFamilies) {
    CAPTURE(one.name);
    CHECK((one.name.starts_with("tacho_") || one.name.starts_with("process_")));
    CHECK(one.name.ends_with("_total") == (one.type == metrics::Type::counter));
    CHECK(one.type != metrics::Type::histogram);
    CHECK(one.help.size() > 10);
    CHECK(one.help.ends_with('.'));
  }
}

TEST_CASE("samples have the labels that their family says, and a target its own") {
  for (const SelfFamily& one : all_families()) {
    CAPTURE(one.family->name);
    std::set<std::string> known;
    for (const auto name : one.family->sample_labels | std::views::split(',')) {
      known.emplace(name.begin(), name.end());
    }
    for (const auto& sample : one.samples) {
      for (const auto& [name, text] : sample.labels) {
        CAPTURE(name);
        CHECK((known.contains(name) || name == "team"));
      }
    }
  }
}

TEST_CASE("a target's information has its labels and its identity, each name once") {
  const auto all = metrics_of(one_target());
  const auto& info = family(all, "tacho_target_info");
  REQUIRE(info.samples.size() == 1);
  CHECK(label(info.samples[0], "target") == "web");
  CHECK(label(info.samples[0], "team") == "edge");
  CHECK(label(info.samples[0], "runtime") == "docker");
  CHECK(label(info.samples[0], "container_id") == std::string(64, 'a'));
  CHECK(label(info.samples[0], "image") == "nginx:1.27");
  CHECK(label(info.samples[0], "compose_project") == "shop");
  CHECK(label(info.samples[0], "compose_service") == "front");
  CHECK(label(info.samples[0], "node") == "node-1");
  std::set<std::string> names;
  for (const auto& [name, text] : info.samples[0].labels) {
    CHECK(names.insert(name).second);
    CHECK_FALSE(text.empty());
  }
  CHECK(value(family(all, "tacho_targets")) == 1);
  CHECK(value(family(all, "tacho_targets_overflowed_total")) == 0);
}

TEST_CASE("a target that is told apart by its cgroup has that label once") {
  tacho::targets::TargetTable table(4);
  Silent observer;
  tacho::targets::DesiredTarget wanted{"job", {{"target", "job"}, {"cgroup", "/jobs/a"}}, {7}, {}, {}, {}};
  wanted.identity = tacho::targets::identify("/jobs/a");
  table.apply({wanted}, {}, observer);
  table.all_count();
  const auto all = metrics_of(table);
  const auto& labels = family(all, "tacho_target_info").samples[0].labels;
  CHECK(std::ranges::count(labels, "cgroup", &metrics::Labels::value_type::first) == 1);
}

TEST_CASE("a probe that could not be loaded is shown as not attached") {
  const std::array<std::string, 1> failed{"poll"};
  const auto all = object_metrics({}, failed, false);
  const auto& attached = family(all, "tacho_probe_attached");
  CHECK(value(attached) == 0);
  CHECK(label(attached.samples[0], "probe") == "poll");
  CHECK(label(attached.samples[0], "method") == "none");
}

TEST_CASE("collectors, reloads and the build are reported as they are") {
  const auto all = all_families();
  CHECK(value(family(all, "tacho_scrape_collector_duration_seconds")) == 0.5);
  CHECK(value(family(all, "tacho_scrape_collector_success")) == 0);
  CHECK(value(family(all, "tacho_config_last_reload_successful")) == 0);
  CHECK(value(family(all, "tacho_config_last_reload_success_timestamp_seconds")) == 12);
  CHECK(label(family(all, "tacho_build_info").samples[0], "version") == tacho::version());
}

TEST_CASE("the process is described by what the kernel says of it") {
  const auto before = process_metrics();
  CHECK(value(family(before, "process_open_fds")) >= 3);
  CHECK(value(family(before, "process_max_fds")) >= value(family(before, "process_open_fds")));
  CHECK(value(family(before, "process_threads")) >= 1);
  CHECK(value(family(before, "process_virtual_memory_bytes")) > value(family(before, "process_resident_memory_bytes")));
  CHECK(value(family(before, "process_resident_memory_bytes")) > 100'000);
  const double now = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  CHECK(value(family(before, "process_start_time_seconds")) > now - 600);
  CHECK(value(family(before, "process_start_time_seconds")) < now + 2);
}

TEST_CASE("what the other process takes is added") {
  const double cpu = value(family(process_metrics(), "process_cpu_seconds_total"));
  const auto both = process_metrics({.cpu_seconds = 1000, .memory_bytes = 1e12});
  CHECK(value(family(both, "process_cpu_seconds_total")) >= cpu + 1000);
  CHECK(value(family(both, "process_cpu_seconds_total")) < cpu + 1010);
  CHECK(value(family(both, "process_resident_memory_bytes")) > 1e12);
}

TEST_CASE("an open descriptor is counted, and gone when it is closed") {
  const double before = value(family(process_metrics(), "process_open_fds"));
  const int descriptor = ::dup(0);
  REQUIRE(descriptor >= 0);
  CHECK(value(family(process_metrics(), "process_open_fds")) == before + 1);
  ::close(descriptor);
  CHECK(value(family(process_metrics(), "process_open_fds")) == before);
}
