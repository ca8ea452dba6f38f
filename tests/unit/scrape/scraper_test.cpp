// One probe's failure does not hide the others.

#include "scrape/scraper.h"

#include <array>
#include <catch2/catch.hpp>
#include <chrono>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernel/support/page.h"
#include "metrics/buckets.h"
#include "probes/probe.h"
#include "scrape/views.h"
#include "targets/target_table.h"

namespace metrics = tacho::metrics;
namespace targets = tacho::targets;
using tacho::Result;
using tacho::kernel_test::Labels;
using tacho::kernel_test::Page;

using namespace std::chrono_literals;

namespace {

constexpr std::array kGood{
    metrics::Family{"tacho_good_total", metrics::Type::counter, "", "A counter.", "", {}},
    metrics::Family{"tacho_rare_total", metrics::Type::counter, "", "A counter.", "", {}}.on_first_event()};
constexpr std::array kBad{
    metrics::Family{"tacho_bad_total", metrics::Type::counter, "", "A counter.", "", {}},
    metrics::Family{"tacho_bad_rare_total", metrics::Type::counter, "", "A counter.", "", {}}.on_first_event()};

/// A probe of one counter, which is the number of its target. Of a sample it knows what a test says.
class FakeProbe final : public tacho::probes::Probe {
 public:
  FakeProbe(std::string_view name, std::span<const metrics::Family> families)
      : Probe({.name = name, .families = families, .bounded_maps = {}}, nullptr) {}

  bool throws = false;
  bool refuses = false;
  std::vector<std::uint32_t> targets;
  std::uint64_t rare = 0;  // events of every target
  tacho::probes::TargetSample known;

  Result<void> add_target(std::uint32_t index) override {
    if (refuses) {
      return tacho::fail("no memory");
    }
    targets.push_back(index);
    return {};
  }
  void remove_target(std::uint32_t index) override { std::erase(targets, index); }
  Result<void> flush() override { return {}; }
  void sample(const tacho::probes::Look&, tacho::probes::TargetSample& sample) override {
    if (known.socket) {
      sample.socket = known.socket;
    }
    if (known.poll) {
      sample.poll = known.poll;
    }
  }
  void read(const tacho::probes::Look& look, const metrics::Gauges&, metrics::Row& row) override {
    if (throws && look.index == 2) {
      throw std::runtime_error("no way");
    }
    row.values.push_back(metrics::Value::count(look.index));
    row.values.push_back(metrics::Value::count(rare));
  }
};

/// A scraper with two such probes, two targets, and what a test says of the objects.
struct Stage {
  std::mutex mutex;
  targets::TargetTable table{4};
  tacho::kernel::ObjectHealth health{.name = "bad", .hooks = {}, .programs = {}, .lost = {}, .maps = {}};
  FakeProbe* good = nullptr;
  FakeProbe* bad = nullptr;
  std::unique_ptr<tacho::scrape::Scraper> scraper;

  Stage() {
    std::vector<std::unique_ptr<tacho::probes::Probe>> probes;
    auto first = std::make_unique<FakeProbe>("bad", kBad);
    auto second = std::make_unique<FakeProbe>("good", kGood);
    bad = first.get();
    good = second.get();
    probes.push_back(std::move(first));
    probes.push_back(std::move(second));
    std::vector<tacho::kernel::HealthSource> objects{
        [](bool) {
          return tacho::kernel::ObjectHealth{.name = "targets", .hooks = {}, .programs = {}, .lost = {5}, .maps = {}};
        },
        [this](bool with_maps) {
          tacho::kernel::ObjectHealth now = health;
          if (!with_maps) {
            now.maps.clear();
          }
          return now;
        }};
    scraper =
        std::make_unique<tacho::scrape::Scraper>(tacho::config::Config{}, std::move(probes),
                                                 std::vector<std::string>{"broken"}, std::move(objects), table, mutex);
  }

  targets::TargetTable::Changes want(std::initializer_list<const char*> names,
                                     targets::Time now = std::chrono::steady_clock::now()) {
    std::vector<targets::DesiredTarget> wanted;
    for (const char* name : names) {
      wanted.push_back({name, {{"target", name}}, {}, {}, {}, {}});
    }
    auto changes = table.apply(std::move(wanted), now, *scraper);
    table.all_count();
    return changes;
  }

  Page page() { return Page(scraper->scrape(metrics::Format::prometheus_text)); }
};

}  // namespace

TEST_CASE("a probe that throws loses its own families, and the scrape says so") {
  Stage stage;
  CHECK(stage.want({"a", "b"}).failures.empty());
  stage.bad->throws = true;
  const Page broken = stage.page();
  CHECK(broken.count("tacho_bad_total") == 0);
  CHECK(broken.value("tacho_good_total", {{"target", "b"}}) == 2);
  CHECK(broken.value("tacho_scrape_collector_success", {{"collector", "bad"}}) == 0);
  CHECK(broken.value("tacho_scrape_collector_success", {{"collector", "good"}}) == 1);
  stage.bad->throws = false;
  const Page whole = stage.page();
  CHECK(whole.value("tacho_bad_total", {{"target", "a"}}) == 1);
  CHECK(whole.value("tacho_scrape_collector_success", {{"collector", "bad"}}) == 1);
}

TEST_CASE("a target that one probe refuses is taken from all of them") {
  Stage stage;
  stage.good->refuses = true;
  const auto changes = stage.want({"a"});
  REQUIRE(changes.failures.size() == 1);
  CHECK(changes.failures[0] == "target a: probe good: no memory");
  CHECK(stage.bad->targets.empty());
  CHECK(stage.page().count("tacho_bad_total") == 0);
  stage.good->refuses = false;
  CHECK(stage.want({"a"}).added == 1);
  CHECK(stage.page().value("tacho_bad_total", {{"target", "a"}}) == 1);
}

TEST_CASE("a target that ended is there until every reader has seen it, then only kept for when it comes back") {
  Stage stage;
  const auto now = std::chrono::steady_clock::now();
  stage.want({"a", "b"}, now - 4min);
  stage.want({"b"}, now - 3min);
  for (int reader = 0; reader < 3; ++reader) {
    stage.scraper->release_forgotten(now);
    CHECK(stage.page().value("tacho_good_total", {{"target", "a"}}) == 1);
  }
  stage.scraper->read_by("first");
  stage.scraper->release_forgotten(now + 1s);
  CHECK(stage.page().count("tacho_good_total", {{"target", "a"}}) == 0);
  CHECK(stage.good->targets == std::vector<std::uint32_t>{1, 2});
  stage.want({"a", "b"});
  CHECK(stage.page().value("tacho_good_total", {{"target", "a"}}) == 1);
}

TEST_CASE("a target that ended long ago is taken from all probes, by the thread that plans and not by a reader") {
  Stage stage;
  const auto now = std::chrono::steady_clock::now();
  stage.want({"a", "b"});
  stage.want({"b"}, now - targets::TargetTable::kLongestRest - std::chrono::seconds(1));
  for (int reader = 0; reader < 3; ++reader) {
    stage.scraper->read_by("first");
    CHECK(stage.page().value("tacho_good_total", {{"target", "a"}}) == 1);
  }
  CHECK(stage.good->targets == std::vector<std::uint32_t>{1, 2});
  stage.scraper->release_forgotten(now);
  CHECK(stage.page().count("tacho_good_total", {{"target", "a"}}) == 0);
  CHECK(stage.good->targets == std::vector<std::uint32_t>{2});
  CHECK(stage.bad->targets == std::vector<std::uint32_t>{2});
}

TEST_CASE("a probe that could not be loaded is named in the scrape") {
  Stage stage;
  CHECK(stage.page().value("tacho_probe_attached", {{"probe", "broken"}}) == 0);
}

TEST_CASE("a family of rare events appears with the first one and stays, whatever the configuration becomes") {
  Stage stage;
  stage.want({"a", "b"});
  CHECK(stage.page().count("tacho_rare_total") == 0);
  stage.good->rare = 3;
  CHECK(stage.page().value("tacho_rare_total", {{"target", "a"}}) == 3);
  CHECK(stage.page().count("tacho_bad_rare_total") == 0);
  stage.good->rare = 0;  // as a gauge may
  CHECK(stage.page().count("tacho_rare_total") == 2);
  tacho::config::Config other;
  other.window = 60s;
  other.histograms.buckets_per_octave = 4;
  stage.scraper->reconfigure(other);
  CHECK(stage.page().count("tacho_rare_total") == 2);
  CHECK(stage.page().count("tacho_bad_rare_total") == 0);
}

TEST_CASE("a target that comes back goes on with the series that it had, a new one begins without") {
  Stage stage;
  const auto now = std::chrono::steady_clock::now();
  stage.want({"a"}, now - 4min);
  stage.good->rare = 1;
  CHECK(stage.page().count("tacho_rare_total", {{"target", "a"}}) == 1);
  stage.good->rare = 0;
  stage.want({}, now - 3min);
  stage.scraper->read_by("first");
  stage.scraper->release_forgotten(now + 1s);
  stage.want({"a", "b"});
  CHECK(stage.page().count("tacho_rare_total", {{"target", "a"}}) == 1);
  CHECK(stage.page().count("tacho_rare_total", {{"target", "b"}}) == 0);
}

TEST_CASE("OpenMetrics ends as it must") {
  Stage stage;
  CHECK(stage.scraper->scrape(metrics::Format::openmetrics).ends_with("# EOF\n"));
}

TEST_CASE("how objects do is exported as they tell it") {
  Stage stage;
  stage.health.hooks = {{"send", "tp_btf", ""}, {"receive", "none", "refused"}};
  stage.health.programs = {{.program = "on_send", .runs = 7, .run_ns = 9, .misses = 3, .verified = 0}};
  stage.health.lost = {0, 4};
  stage.health.maps = {{"slots", 2, 8}};
  const Page page = stage.page();
  CHECK(page.value("tacho_probe_attached", {{"probe", "bad"}, {"hook", "send"}, {"method", "tp_btf"}}) == 1);
  CHECK(page.value("tacho_probe_attached", {{"probe", "bad"}, {"hook", "receive"}}) == 0);
  CHECK(page.value("tacho_probe_misses_total", {{"program", "on_send"}}) == 3);
  CHECK(page.sum("tacho_lost_events_total", {{"probe", "bad"}}) == 4 + 3);  // `skipped` is what programs missed
  CHECK(page.value("tacho_lost_events_total", {{"probe", "targets"}, {"reason", "socket_state"}}) == 5);
  CHECK(page.value("tacho_map_entries", {{"map", "slots"}}) == 2);
  CHECK(page.value("tacho_map_max_entries", {{"map", "slots"}}) == 8);
}

TEST_CASE("a sample of one probe says nothing of what another one would see") {
  Stage stage;
  auto& turns = stage.good->known.socket.emplace().counters.turns.emplace();
  stage.want({"a"});
  turns.requests = 10;
  stage.good->known.socket->duration.slots[1] = 10;
  stage.scraper->sample();
  const Labels no_poll{{"target", "a"}, {"condition", "no_poll"}};
  CHECK(stage.page().count("tacho_target_condition", no_poll) == 0);
  CHECK(stage.page().value("tacho_target_condition", {{"target", "a"}, {"condition", "multiplexed"}}) == 0);
  stage.bad->known.poll.emplace();
  stage.scraper->sample();
  CHECK(stage.page().value("tacho_target_condition", no_poll) == 1);
  const auto table = stage.scraper->view(tacho::scrape::table_view, tacho::scrape::TableQuery{});
  REQUIRE(table.rows.size() == 1);
  CHECK(metrics::total(table.rows[0].summary.sockets.duration) == 10);
  CHECK(table.rows[0].summary.request_rate > 0);
}

TEST_CASE("events that probes have lost are told of each target, those of discovery are not") {
  Stage stage;
  stage.want({"a"});
  stage.scraper->sample();
  const Labels lost{{"target", "a"}, {"condition", "lost_events"}};
  CHECK(stage.page().value("tacho_target_condition", lost) == 0);
  stage.health.lost = {1};
  stage.scraper->sample();
  CHECK(stage.page().value("tacho_target_condition", lost) == 1);
  CHECK(stage.scraper->view(tacho::scrape::table_view, tacho::scrape::TableQuery{}).lost == 1);
}
