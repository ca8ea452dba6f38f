// What a file that is read again changes at once, and what waits for the next start.

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "config/keys.h"
#include "loading.h"

namespace config = tacho::config;
using Keys = std::vector<std::string>;

namespace {

/// All keys with values of their own, by the outermost key that says when they take effect: another value of each.
const std::map<std::string, std::string> kAtOnce{
    {"window", "20s"},
    {"idle_limit", "20ms"},
    {"targets", "[{name: a, cgroup: /a}]"},
    {"discovery.listeners", "always"},
    {"discovery.exclude", "[/a]"},
    {"discovery.exclude_namespaces", "[a]"},
    {"discovery.exclude_clients", "node"},
    {"labels.rename.namespace", "a"},
    {"labels.rename.pod", "b"},
    {"labels.rename.container", "c"},
    {"labels.rename.cgroup", "d"},
    {"labels.drop", "[pod]"},
    {"histograms.format", "native"},
    {"histograms.buckets_per_octave", "4"},
    {"metrics.drop", "[tacho_poll_*]"},
    {"limits.overhead", "1%"},
    {"limits.machine_overhead", "2%"},
};
const std::map<std::string, std::string> kAtStart = [] {
  std::map<std::string, std::string> values{
      {"probes.anatomy", "{slow: 5ms}"}, {"limits.max_targets", "10"},
      {"limits.max_peers", "10"},        {"peers", "[{name: a, networks: [10.0.0.0/8]}]"},
      {"run_statistics", "true"},
  };
  for (const config::NamedProbe& probe : config::kProbes) {
    values.emplace("probes." + std::string(probe.name), "{enabled: false}");
  }
  return values;
}();

/// "a.b" and "v" as a file that says so.
std::string file_of(const std::string& path, const std::string& value) {
  const auto dot = path.find('.');
  return dot == std::string::npos ? "{" + path + ": " + value + "}"
                                  : "{" + path.substr(0, dot) + ": " + file_of(path.substr(dot + 1), value) + "}";
}

/// Every key but what lies below a list or below one that waits for a start as a whole.
void list_keys(const std::vector<config::KeyInfo>& keys, const std::string& path, Keys& at_once, Keys& at_start) {
  for (const config::KeyInfo& key : keys) {
    if (key.restart) {
      at_start.push_back(path + key.name);
    } else if (!key.keys.empty() && !key.is_list) {
      list_keys(key.keys, path + key.name + '.', at_once, at_start);
    } else {
      at_once.push_back(path + key.name);
    }
  }
}

Keys names_of(const std::map<std::string, std::string>& values) {
  Keys names;
  for (const auto& [name, value] : values) {
    names.push_back(name);
  }
  return names;
}

}  // namespace

TEST_CASE("of every key it is decided whether it takes effect at once or at a start") {
  Keys at_once;
  Keys at_start;
  list_keys(config::config_type().keys, "", at_once, at_start);
  // A new key stands here, too: who adds it has applied it in a reload, or has made it a restart_key in keys.cpp.
  std::ranges::sort(at_once);
  std::ranges::sort(at_start);
  CHECK(at_once == names_of(kAtOnce));
  CHECK(at_start == names_of(kAtStart));
}

TEST_CASE("what takes effect at a start is held back, named, and nothing else is") {
  const config::Config running;
  for (const auto& [path, value] : kAtStart) {
    CAPTURE(path, value);
    const config::Config wanted = good(file_of(path, value));
    config::Config fresh = wanted;
    CHECK(config::hold_back(running, fresh) == Keys{path});
    // What runs now is what ran: the next reload of the same file says so again, and one that goes back says nothing.
    config::Config again = wanted;
    CHECK(config::hold_back(fresh, again) == Keys{path});
    config::Config back;
    CHECK(config::hold_back(fresh, back).empty());
    // At a start with it nothing is held back, unless it changes.
    again = wanted;
    CHECK(config::hold_back(wanted, again).empty());
    CHECK(config::hold_back(wanted, back) == Keys{path});
  }
  for (const auto& [path, value] : kAtOnce) {
    CAPTURE(path, value);
    config::Config fresh = good(file_of(path, value));
    CHECK(config::hold_back(running, fresh).empty());
  }
}

TEST_CASE("what is held back does not keep the rest from taking effect") {
  config::Config fresh = good("{window: 20s, limits: {max_targets: 7, max_peers: 8}, run_statistics: true}");
  config::Config running;
  CHECK(config::hold_back(running, fresh) == Keys{"limits.max_targets", "limits.max_peers", "run_statistics"});
  CHECK(fresh.window == std::chrono::seconds(20));
  CHECK(fresh.limits.max_targets == running.limits.max_targets);
  CHECK(fresh.limits.max_peers == running.limits.max_peers);
  CHECK_FALSE(fresh.run_statistics);
}
