#include "scrape/target_view.h"

#include <catch2/catch.hpp>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/utf8.h"
#include "metrics/buckets.h"

using namespace tacho::scrape;

namespace {

const std::string kHostile = "\"><script>alert('x')</script>&\\\n\t\x01";
const std::string kInvalid = std::string("a\xff\xc3(\xf0\x80\x80\x80z", 9);

TargetSummary summary_of(const std::string& name) {
  TargetSummary target;
  target.name = name;
  target.labels = {{"target", name}};
  return target;
}

TargetSummary busy(const std::string& name, double rate) {
  TargetSummary target = summary_of(name);
  target.request_rate = rate;
  return target;
}

}  // namespace

TEST_CASE("/targets is JSON that says of each target what is known") {
  TargetSummary target = busy("web", 12.5);
  target.labels.emplace_back("team", "edge");
  target.identity = tacho::targets::identify("/system.slice/nginx.service");
  target.live = false;
  target.cgroups = 2;
  target.sockets.duration.slots[tacho::metrics::fine_slot_of(1'000'000)] = 1ULL << 60;
  target.conditions = {"no_poll"};
  const std::vector<std::string> absent{"dns"};
  const auto document = nlohmann::json::parse(targets_json(std::vector{target}, absent));
  const auto& entry = document.at("targets").at(0);
  CHECK(entry.at("target") == "web");
  CHECK(entry.at("state") == "ended");
  CHECK(entry.at("labels") == nlohmann::json{{"target", "web"}, {"team", "edge"}});
  CHECK(entry.at("unit") == "nginx.service");
  CHECK(entry.at("cgroup") == "/system.slice/nginx.service");
  CHECK(entry.at("cgroups") == 2);
  CHECK(entry.at("requests") == 1ULL << 60);
  CHECK(entry.at("requests_per_second") == 12.5);
  CHECK(entry.at("duration_p50_seconds").get<double>() == Approx(1e-3).epsilon(0.06));
  CHECK(entry.at("conditions") == nlohmann::json{"no_poll"});
  CHECK(document.at("absent") == nlohmann::json{"dns"});
}

TEST_CASE("without targets there is an empty list, without observations there is null") {
  const auto document = nlohmann::json::parse(targets_json({}, {}));
  CHECK(document.at("targets").empty());
  CHECK(document.at("targets").is_array());
  CHECK(document.at("absent").is_array());
  const auto one = nlohmann::json::parse(targets_json(std::vector{summary_of("idle")}, {}));
  CHECK(one.at("targets").at(0).at("duration_p99_seconds").is_null());
}

TEST_CASE("hostile names come back from the JSON as they were") {
  TargetSummary target = summary_of(kHostile);
  target.labels.emplace_back("label", kHostile);
  target.identity.path = kHostile;
  const auto document = nlohmann::json::parse(targets_json(std::vector{target}, std::vector{kHostile}));
  CHECK(document.at("targets").at(0).at("target") == kHostile);
  CHECK(document.at("targets").at(0).at("labels").at("label") == kHostile);
  CHECK(document.at("targets").at(0).at("cgroup") == kHostile);
  CHECK(document.at("absent").at(0) == kHostile);
}

TEST_CASE("bytes that are no UTF-8 are replaced in the JSON") {
  TargetSummary target = summary_of(kInvalid);
  target.identity.path = kInvalid;
  const std::string text = targets_json(std::vector{target}, std::vector{kInvalid});
  const auto document = nlohmann::json::parse(text);
  const auto name = document.at("targets").at(0).at("target").get<std::string>();
  CHECK(name.find("\uFFFD") != std::string::npos);
  CHECK(name.starts_with('a'));
  CHECK(name.ends_with('z'));
}

TEST_CASE("numbers that JSON cannot say do not break it") {
  TargetSummary target = summary_of("web");
  target.request_rate = std::numeric_limits<double>::infinity();
  target.poll_mean = std::numeric_limits<double>::quiet_NaN();
  CHECK(nlohmann::json::parse(targets_json(std::vector{target}, {})).at("targets").size() == 1);
}
