#include "documents.h"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "config/config.h"
#include "config/keys.h"
#include "config/labels.h"
#include "config/type.h"
#include "loading.h"

namespace config = tacho::config;

namespace {

std::string contents(const std::filesystem::path& path) {
  std::ostringstream out;
  out << std::ifstream(path).rdbuf();
  return out.str();
}

/// Compares a committed file with what is generated; with TACHO_UPDATE_GOLDEN=1 in the environment writes it first.
void check_golden(const std::string& name, const std::string& generated) {
  const std::filesystem::path path = std::filesystem::path(TACHO_CONFIG_DIR) / name;
  if (std::getenv("TACHO_UPDATE_GOLDEN") != nullptr) {
    std::ofstream(path) << generated;
  }
  INFO(path << " is stale: run `TACHO_UPDATE_GOLDEN=1 unit_config` and look at the difference");
  CHECK(contents(path) == generated);
}

/// Calls `visit(key, path)` for every key of the configuration.
void each_key(const std::vector<config::KeyInfo>& keys, const std::string& path, const auto& visit) {
  for (const auto& key : keys) {
    visit(key, path + key.name);
    each_key(key.keys, path + key.name + '.', visit);
  }
}

}  // namespace

TEST_CASE("config/tacho.schema.json is what the keys say") {
  check_golden("tacho.schema.json", config::json_schema());
}

TEST_CASE("config/tacho.yaml is what the keys say") {
  check_golden("tacho.yaml", config::reference_yaml());
}

TEST_CASE("config/tacho.yaml loads as the defaults") {
  const auto read = good(contents(std::filesystem::path(TACHO_CONFIG_DIR) / "tacho.yaml"));
  const config::Config defaults;
  CHECK(read.window == defaults.window);
  CHECK(read.idle_limit == defaults.idle_limit);
  CHECK(read.targets.empty());
  CHECK(read.discovery.listeners == defaults.discovery.listeners);
  CHECK(read.discovery.exclude.empty());
  CHECK(read.probes.socket.enabled == defaults.probes.socket.enabled);
  CHECK(read.probes.poll.attach == defaults.probes.poll.attach);
  CHECK(read.histograms.buckets_per_octave == defaults.histograms.buckets_per_octave);
  CHECK(read.histograms.format == defaults.histograms.format);
  CHECK(read.metrics.drop.empty());
  CHECK(read.limits.max_targets == defaults.limits.max_targets);
  CHECK(read.limits.max_peers == defaults.limits.max_peers);
  CHECK(read.limits.overhead == defaults.limits.overhead);
  CHECK(read.limits.machine_overhead == defaults.limits.machine_overhead);
  CHECK(read.peers.empty());
  CHECK(read.run_statistics == defaults.run_statistics);
}

TEST_CASE("every key is in config/tacho.yaml and in the schema, and is explained") {
  const std::string yaml = contents(std::filesystem::path(TACHO_CONFIG_DIR) / "tacho.yaml");
  const auto schema = nlohmann::json::parse(contents(std::filesystem::path(TACHO_CONFIG_DIR) / "tacho.schema.json"));
  int keys = 0;
  each_key(config::config_type().keys, "", [&](const config::KeyInfo& key, const std::string& path) {
    CAPTURE(path);
    ++keys;
    CHECK(key.doc.size() > 10);
    CHECK(key.doc.ends_with('.'));
    CHECK_FALSE(key.summary.empty());
    CHECK(yaml.find(' ' + key.name + ':') + yaml.find('\n' + key.name + ':') != 2 * std::string::npos);
    CHECK(schema.dump().find("\"description\":" + nlohmann::json(key.doc + std::string(key.effect())).dump()) !=
          std::string::npos);
  });
  // Of Config and what it consists of: a new member needs its key. A probe has one, with two below it.
  CHECK(keys == 47 + 3 * static_cast<int>(config::kProbes.size()));
}

TEST_CASE("the examples in config/tacho.yaml are good") {
  each_key(config::config_type().keys, "", [&](const config::KeyInfo& key, const std::string& path) {
    if (key.example.empty()) {
      return;
    }
    CAPTURE(path);
    REQUIRE(path.find('.') == std::string::npos);
    const auto read = good(path + ":\n" + key.example);
    CHECK(read.targets.size() == (path == "targets" ? 4 : 0));
    CHECK(read.peers.size() == (path == "peers" ? 2 : 0));
  });
}

TEST_CASE("every reserved label is refused, others are not") {
  CHECK(config::reserved_labels().size() > 20);
  for (const std::string_view label : config::reserved_labels()) {
    CHECK_FALSE(config::check_label_name(label));
  }
  for (const char* label : {"team", "_x", "Zone_1", "targets", "a"}) {
    CHECK(config::check_label_name(label));
  }
}
