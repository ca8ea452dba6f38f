#include "probes/registry.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "config/labels.h"
#include "config/load.h"
#include "empty_row.h"
#include "kernel/variants.h"
#include "lines.h"

namespace metrics = tacho::metrics;
namespace probes = tacho::probes;
using metrics::Family;
using metrics::Type;

namespace {

const std::filesystem::path kSource = TACHO_SOURCE_DIR;

std::string contents(const std::filesystem::path& path) {
  std::ostringstream out;
  out << std::ifstream(path).rdbuf();
  return out.str();
}

std::string_view without_total(std::string_view name) {
  return name.ends_with("_total") ? name.substr(0, name.size() - 6) : name;
}

bool is_metric_name(std::string_view name) {
  return name.starts_with("tacho_") &&
         std::ranges::all_of(name, [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; });
}

}  // namespace

TEST_CASE("a probe has all of its files") {
  for (const probes::Entry& probe : probes::registry()) {
    const std::string name(probe.name);
    const std::map<std::string, std::string> files{
        {"bpf/" + name + ".bpf.c", "the programs"},
        {"bpf/" + name + ".h", "what programs and user space share"},
        {"exporter/probes/" + name + ".cpp", "loading and reading"},
        {"exporter/probes/" + name + "_decode.cpp", "families and decoding, pure"},
        {"tests/unit/probes/" + name + "_decode_test.cpp", "the test of decoding"},
        {"tests/kernel/" + name + "_test.cpp", "the test in the kernel"},
    };
    for (const auto& [file, purpose] : files) {
      INFO("probe " << name << " lacks " << file << ": " << purpose);
      CHECK(std::filesystem::exists(kSource / file));
    }
  }
}

TEST_CASE("every BPF object and every probe source belongs to a probe of the registry") {
  std::set<std::string, std::less<>> names{"targets"};  // owner of the look-up maps, no probe
  for (const probes::Entry& probe : probes::registry()) {
    INFO("two rows of the registry are called " << probe.name);
    CHECK(names.insert(std::string(probe.name)).second);
  }
  for (const auto& entry : std::filesystem::directory_iterator(kSource / "bpf")) {
    const std::string file = entry.path().filename().string();
    if (const auto suffix = file.find(".bpf.c"); suffix != std::string::npos) {
      INFO("bpf/" << file << " has no line in exporter/config/probe_list.h");
      CHECK(names.contains(file.substr(0, suffix)));
    }
  }
  for (const auto& entry : std::filesystem::directory_iterator(kSource / "exporter/probes")) {
    const std::string file = entry.path().filename().string();
    if (const auto suffix = file.find("_decode.cpp"); suffix != std::string::npos) {
      INFO("exporter/probes/" << file << " has no line in exporter/config/probe_list.h");
      CHECK(names.contains(file.substr(0, suffix)));
    }
  }
}

TEST_CASE("a probe can be configured, and its switch is its own") {
  const auto schema = nlohmann::json::parse(contents(kSource / "config/tacho.schema.json"));
  const std::string yaml = contents(kSource / "config/tacho.yaml");
  const auto& keys = schema.at("properties").at("probes").at("properties");
  CHECK(keys.contains("anatomy"));  // what two probes tell together
  CHECK(keys.size() == probes::registry().size() + 1);
  for (const probes::Entry& probe : probes::registry()) {
    const std::string name(probe.name);
    INFO("probes." << name << " is missing in the schema, in config/tacho.yaml or in the configuration");
    CHECK(keys.contains(name));
    CHECK(yaml.find("\n  " + name + ":\n") != std::string::npos);
    const auto loaded = tacho::config::load_text("probes: {" + name + ": {enabled: false}}", "test");
    CHECK(loaded.errors.empty());
    for (const probes::Entry& other : probes::registry()) {
      CHECK(other.settings(loaded.config).enabled == (other.name != probe.name));
    }
  }
}

TEST_CASE("who reads the list of probes as text finds each of them: guests of the matrix, the test of the structure") {
  std::vector<std::string> names;
  std::istringstream lines(contents(kSource / "exporter/config/probe_list.h"));
  const std::regex row("^ *PROBE\\(([a-z]*),.*");
  std::smatch found;
  for (std::string line; std::getline(lines, line);) {
    if (std::regex_match(line, found, row)) {
      names.push_back(found[1]);
    }
  }
  std::vector<std::string> known;
  for (const probes::Entry& probe : probes::registry()) {
    known.emplace_back(probe.name);
  }
  CHECK(names == known);
  CHECK(contents(kSource / "tests/matrix/guest/steps.sh").contains("PROBE(\\([a-z]*\\),.*"));
}

TEST_CASE("a probe that has nothing to tell yet gives a row of exactly the shape of its families") {
  for (const probes::Entry& probe : probes::registry()) {
    INFO("tests/unit/probes/" << probe.name << "_decode_test.cpp lacks an EmptyRow");
    REQUIRE(probes::test::EmptyRow::all().contains(probe.name));
    metrics::Row row;
    probes::test::EmptyRow::all().at(probe.name)(row);
    probes::test::check_shape(probe.families(), row);
    for (const auto& [series, value] : probes::test::lines(probe.families(), row)) {
      CAPTURE(series);
      CHECK(value == "0");
    }
  }
}

TEST_CASE("families are named by the rules, each once") {
  std::set<std::string_view> names;
  for (const probes::Entry& probe : probes::registry()) {
    CHECK_FALSE(probe.title.empty());
    CHECK_FALSE(probe.families().empty());
    for (const Family& family : probe.families()) {
      CAPTURE(probe.name, family.name);
      CHECK(names.insert(family.name).second);
      CHECK(is_metric_name(family.name));
      CHECK(family.name.ends_with("_total") == (family.type == Type::counter));
      for (const char* suffix : {"_count", "_sum", "_bucket", "_created", "_info"}) {
        CHECK_FALSE(family.name.ends_with(suffix));
      }
      if (family.type == Type::histogram) {
        CHECK(family.unit == "seconds");
      }
      if (!family.unit.empty()) {
        CHECK(without_total(family.name).ends_with("_" + std::string(family.unit)));
      }
      CHECK(family.help.size() > 20);
      CHECK(family.help.ends_with('.'));
    }
  }
  CHECK(names.size() > 20);
}

TEST_CASE("a base unit at the end of a name is declared as the unit") {
  for (const probes::Entry& probe : probes::registry()) {
    for (const Family& family : probe.families()) {
      CAPTURE(family.name);
      for (const char* unit : {"seconds", "ratio"}) {
        CHECK((family.unit == unit) == without_total(family.name).ends_with("_" + std::string(unit)));
      }
    }
  }
}

TEST_CASE("labels of families are reserved, so that no configuration can set them") {
  for (const probes::Entry& probe : probes::registry()) {
    for (const Family& family : probe.families()) {
      if (family.label.empty()) {
        CHECK(family.values.empty());
        continue;
      }
      CAPTURE(family.name, family.label);
      CHECK(std::ranges::find(tacho::config::reserved_labels(), family.label) !=
            tacho::config::reserved_labels().end());
      const std::set<std::string_view> distinct(family.values.begin(), family.values.end());
      CHECK(distinct.size() == family.values.size());
    }
  }
}

TEST_CASE("a family names hooks that its probe has, and all that hooks observe names one") {
  // Read from files.
  const std::set<std::string_view> elsewhere{"tacho_cpu_throttled_seconds_total"};
  for (const probes::Entry& probe : probes::registry()) {
    std::set<std::string_view> hooks;
    for (const auto& variant : probe.variants()) {
      for (const auto& hook : variant.hooks) {
        hooks.insert(hook.name);
      }
    }
    for (const Family& family : probe.families()) {
      CAPTURE(family.name);
      CHECK((family.hooks.empty() && family.value_hooks.empty()) == elsewhere.contains(family.name));
      CHECK((family.value_hooks.empty() || family.value_hooks.size() == family.values.size()));
      CHECK(std::ranges::all_of(family.hooks, [&](std::string_view hook) { return hooks.contains(hook); }));
      CHECK(std::ranges::all_of(family.value_hooks, [&](std::string_view hook) { return hooks.contains(hook); }));
    }
  }
}

TEST_CASE("a help that speaks of a window belongs to a gauge, and the window is a placeholder") {
  for (const probes::Entry& probe : probes::registry()) {
    for (const Family& family : probe.families()) {
      CAPTURE(family.name);
      if (family.help.find("window") != std::string_view::npos) {
        CHECK(family.type == Type::gauge);
        CHECK(family.help.find("{window}") != std::string_view::npos);
      }
    }
  }
}
