#include "scrape/families.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <ranges>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "config/labels.h"
#include "config/load.h"
#include "probes/registry.h"
#include "scrape/self_families.h"
#include "targets/labels.h"

namespace tacho::scrape {
namespace {

config::Config read(const std::string& yaml) {
  const auto loaded = config::load_text(yaml, "tacho.yaml");
  REQUIRE(loaded.errors.empty());
  return loaded.config;
}

FamilySet dropped(const std::string& globs) {
  return matching_families(read("metrics: {drop: " + globs + "}").metrics.drop);
}

std::vector<std::string> warnings(const std::string& yaml) {
  std::vector<std::string> found;
  for (const config::Diagnostic& warning : pointless_drops(read(yaml))) {
    found.push_back(config::format(warning, "tacho.yaml"));
  }
  return found;
}

TEST_CASE("every family is known by its name, once") {
  const auto names = family_names();
  CHECK(std::set(names.begin(), names.end()).size() == names.size());
  for (const char* name :
       {"tacho_request_duration_seconds", "tacho_poll_waiters", "tacho_threads", "tacho_saturation_ratio",
        "tacho_target_condition", "tacho_target_info", "process_threads"}) {
    CAPTURE(name);
    CHECK(std::ranges::find(names, name) != names.end());
  }
}

TEST_CASE("globs drop the families whose whole name they match") {
  CHECK(dropped("[]").empty());
  CHECK(dropped("[tacho_requests_total]") == FamilySet{"tacho_requests_total"});
  CHECK(dropped("[tacho_requests, tacho_requests_tota]").empty());
  CHECK(dropped("['tacho_saturation_*', process_threads]") ==
        FamilySet{"tacho_saturation_ratio", "tacho_saturation_ratio_error", "process_threads"});
  CHECK(dropped("['*']").size() == family_names().size());
}

TEST_CASE("a glob that matches nothing is a warning that names its place") {
  CHECK(warnings("metrics: {drop: ['tacho_*', process_threads]}").empty());
  CHECK(warnings("metrics:\n  drop:\n    - process_threads\n    - tacho_request_total\n    - go_*\n") ==
        std::vector<std::string>{
            "tacho.yaml:4:7: warning: metrics.drop[1]: 'tacho_request_total' matches no metric of tacho (did you mean "
            "'tacho_requests_total'?)",
            "tacho.yaml:5:7: warning: metrics.drop[2]: 'go_*' matches no metric of tacho (exporter/METRICS.md lists "
            "them)"});
}

TEST_CASE("an entry that is refused is not said to match nothing, too") {
  const auto loaded = config::load_text("metrics: {drop: [[], {a: b}]}", "tacho.yaml");
  CHECK(loaded.errors.size() == 2);
  CHECK(pointless_drops(loaded.config).empty());
}

TEST_CASE("labels that series of targets have are reserved, and none is that tacho or Prometheus has no use for") {
  config::TargetRule entry;
  entry.name = "web";
  targets::Labels labels = targets::labels_of(entry);
  targets::CgroupIdentity identity;
  identity.user = "1000";
  targets::add_container(labels, {.namespace_ = "shop", .pod = "web-1", .container = "web"}, identity);
  std::set<std::string, std::less<>> of_targets;
  for (const auto& [name, value] : labels) {
    of_targets.insert(name);
  }
  const auto add = [&of_targets](std::span<const metrics::Family> families) {
    for (const metrics::Family& family : families) {
      of_targets.insert(std::string(family.label));
    }
  };
  for (const probes::Entry& probe : probes::registry()) {
    add(probe.families());
  }
  for (const JudgedFamilies& judged : judged_families()) {
    add(judged.families);
  }
  of_targets.erase("");
  auto all = of_targets;
  all.insert({"instance", "job", "le", "quantile"});
  for (const metrics::Family& family : kSelfFamilies) {
    for (const auto label : family.sample_labels | std::views::split(',')) {
      all.insert(std::string(label.begin(), label.end()));
    }
  }
  const auto reserved = config::reserved_labels();
  for (const std::string& label : of_targets) {
    CAPTURE(label);
    CHECK(std::ranges::find(reserved, label) != reserved.end());
  }
  for (const std::string_view label : reserved) {
    CAPTURE(label);
    CHECK(all.contains(label));
  }
}

}  // namespace
}  // namespace tacho::scrape
