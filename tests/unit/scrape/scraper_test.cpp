// One probe's failure does not hide the others.

#include "scrape/scraper.h"

#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
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
constexpr std::array<std::string_view, 1> kAttached{"attached"};
constexpr std::array<std::string_view, 1> kMissing{"missing"};
constexpr std::array kBad{
    metrics::Family{"tacho_bad_total", metrics::Type::counter, "", "A counter.", "", {}},
    metrics::Family{"tacho_bad_rare_total", metrics::Type::counter, "", "A counter.", "", {}}.on_first_event(),
    metrics::Family{"tacho_bad_seen_total", metrics::Type::counter, "", "A counter.", "", {}}.seen_by(kAttached),
    metrics::Family{"tacho_bad_unseen_total", metrics::Type::counter, "", "A counter.", "", {}}.seen_by(kMissing)};

/// What a test says of the targets of a probe.
struct Told {
  std::atomic<bool> throws = false;
  std::atomic<std::uint64_t> rare = 0;  // events of every target
  tacho::probes::TargetSample known;
  std::function<void()> before_read;  // of a page
  std::function<void()> before_tick;  // of the sampler
};

/// Of one counter, which is the number of its target.
class FakeAccumulators final : public tacho::probes::Accumulators {
 public:
  FakeAccumulators(std::shared_ptr<Told> told, std::uint32_t index, std::size_t families)
      : told_(std::move(told)), index_(index), families_(families) {}

  void sample(const tacho::probes::Look&, tacho::probes::TargetSample& sample) override {
    if (told_->known.socket) {
      sample.socket = told_->known.socket;
    }
    if (told_->known.poll) {
      sample.poll = told_->known.poll;
    }
  }
  void tick(const tacho::probes::Look& look, tacho::probes::TargetSample& sample) override {
    if (told_->before_tick) {
      told_->before_tick();
    }
    this->sample(look, sample);
  }
  void read(const tacho::probes::Look&, const metrics::Gauges&, metrics::Row& row) override {
    if (told_->before_read) {
      told_->before_read();
    }
    if (told_->throws && index_ == 2) {
      throw std::runtime_error("no way");
    }
    row.values.push_back(metrics::Value::count(index_));
    row.values.push_back(metrics::Value::count(told_->rare));
    row.values.resize(families_);
  }

 private:
  const std::shared_ptr<Told> told_;
  const std::uint32_t index_;
  const std::size_t families_;
};

class FakeProbe final : public tacho::probes::Probe {
 public:
  FakeProbe(std::string_view name, std::span<const metrics::Family> families)
      : Probe({.name = name,
               .families = families,
               .bounded_maps = {},
               .unseen = {families, [](std::string_view hook) { return hook == "missing"; }}},
              nullptr),
        families_(families.size()) {}

  const std::shared_ptr<Told> told = std::make_shared<Told>();
  bool refuses = false;
  bool cannot_flush = false;
  std::function<void()> before_flush;
  int looks = 0;  // for what is older than a target
  std::vector<std::uint32_t> targets;
  std::vector<std::weak_ptr<tacho::probes::Accumulators>> made;

  Result<std::shared_ptr<tacho::probes::Accumulators>> add_target(std::uint32_t index) override {
    if (refuses) {
      return tacho::fail("no memory");
    }
    targets.push_back(index);
    auto accumulators = std::make_shared<FakeAccumulators>(told, index, families_);
    made.push_back(accumulators);
    return accumulators;
  }
  void remove_target(std::uint32_t index) override { std::erase(targets, index); }
  Result<void> look_after(tacho::probes::Occasion occasion, std::int64_t /*now_ns*/) override {
    looks += occasion == tacho::probes::Occasion::targets_added ? 1 : 0;
    return {};
  }
  Result<void> flush() override {
    if (before_flush) {
      before_flush();
    }
    return cannot_flush ? tacho::fail("cannot flush") : Result<void>();
  }

 private:
  const std::size_t families_;
};

/// A scraper with two such probes, two targets, and what a test says of the objects.
struct Stage {
  targets::TargetTable table{4};
  tacho::kernel::ObjectHealth health{.name = "bad", .hooks = {}, .programs = {}, .lost = {}, .maps = {}};
  FakeProbe* good = nullptr;
  FakeProbe* bad = nullptr;
  std::unique_ptr<tacho::scrape::Scraper> scraper;

  explicit Stage(std::string_view name_of_good = "good") {
    std::vector<std::unique_ptr<tacho::probes::Probe>> probes;
    auto first = std::make_unique<FakeProbe>("bad", kBad);
    auto second = std::make_unique<FakeProbe>(name_of_good, kGood);
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
    scraper = std::make_unique<tacho::scrape::Scraper>(tacho::config::Config{}, std::move(probes),
                                                       std::vector<std::string>{"broken"}, std::move(objects), table);
  }

  targets::TargetTable::Changes want(std::initializer_list<const char*> names,
                                     targets::Time now = std::chrono::steady_clock::now()) {
    std::vector<targets::DesiredTarget> wanted;
    for (const char* name : names) {
      wanted.push_back({name, {{"target", name}}, {}, {}, {}, {}});
    }
    auto changes = table.apply(std::move(wanted), now, *scraper);
    table.all_count();
    scraper->targets_known();
    return changes;
  }

  Page page() { return Page(scraper->scrape(metrics::Format::prometheus_text)); }
};

}  // namespace

TEST_CASE("a family whose hook is not attached is not exported, not at 0 either") {
  Stage stage;
  stage.want({"a"});
  CHECK(stage.page().count("tacho_bad_seen_total") == 1);
  CHECK(stage.page().count("tacho_bad_unseen_total") == 0);
}

TEST_CASE("a probe that throws loses its own families, and the scrape says so") {
  Stage stage;
  CHECK(stage.want({"a", "b"}).failures.empty());
  stage.bad->told->throws = true;
  const Page broken = stage.page();
  CHECK(broken.count("tacho_bad_total") == 0);
  CHECK(broken.value("tacho_good_total", {{"target", "b"}}) == 2);
  CHECK(broken.value("tacho_scrape_collector_success", {{"collector", "bad"}}) == 0);
  CHECK(broken.value("tacho_scrape_collector_success", {{"collector", "good"}}) == 1);
  stage.bad->told->throws = false;
  const Page whole = stage.page();
  CHECK(whole.value("tacho_bad_total", {{"target", "a"}}) == 1);
  CHECK(whole.value("tacho_scrape_collector_success", {{"collector", "bad"}}) == 1);
}

TEST_CASE("a target that one probe has no memory for stays with the others, and is tried again") {
  Stage stage;
  stage.good->refuses = true;
  CHECK(stage.want({"a"}).failures.empty());
  const auto lacks = stage.scraper->targets_changed();
  REQUIRE_FALSE(lacks);
  CHECK(lacks.error().message == "target a: probe good: no memory");
  stage.scraper->sample();
  CHECK(stage.page().value("tacho_bad_total", {{"target", "a"}}) == 1);
  CHECK(stage.page().count("tacho_good_total") == 0);
  CHECK(stage.page().value("tacho_scrape_collector_success", {{"collector", "good"}}) == 1);
  stage.good->refuses = false;
  stage.good->cannot_flush = true;
  CHECK_FALSE(stage.scraper->targets_changed());
  CHECK(stage.good->looks == 0);
  stage.good->cannot_flush = false;
  CHECK(stage.scraper->targets_changed());
  CHECK(stage.good->looks == 1);  // for what is older than the target
  stage.scraper->targets_known();
  CHECK(stage.page().value("tacho_good_total", {{"target", "a"}}) == 1);
  CHECK(stage.good->targets == std::vector<std::uint32_t>{1});
}

TEST_CASE("a target whose sockets are not watched is not watched at all, and is tried again") {
  Stage stage("socket");
  stage.good->refuses = true;
  const auto changes = stage.want({"a"});
  REQUIRE(changes.failures.size() == 1);
  CHECK(changes.failures[0] == "target a: probe socket: no memory");
  CHECK(stage.bad->targets.empty());
  stage.good->refuses = false;
  CHECK(stage.want({"a"}).added == 1);
  CHECK(stage.page().value("tacho_good_total", {{"target", "a"}}) == 1);
}

TEST_CASE("a target that every probe refuses is not watched") {
  Stage stage;
  stage.good->refuses = true;
  stage.bad->refuses = true;
  const auto changes = stage.want({"a"});
  REQUIRE(changes.failures.size() == 1);
  CHECK(changes.failures[0] == "target a: probe good: no memory");
  stage.good->refuses = false;
  stage.bad->refuses = false;
  CHECK(stage.want({"a"}).added == 1);
  CHECK(stage.page().value("tacho_bad_total", {{"target", "a"}}) == 1);
}

TEST_CASE("losses that cannot be read are not exported as 0, and the condition that judges them is absent") {
  Stage stage;
  stage.health.lost = {1, 2};
  stage.scraper->sample();
  stage.want({"a"});
  stage.scraper->sample();
  CHECK(stage.page().count("tacho_lost_events_total", {{"probe", "bad"}}) == 3);
  CHECK(stage.page().value("tacho_target_condition", {{"target", "a"}, {"condition", "lost_events"}}) == 0);
  stage.health.lost.clear();
  stage.health.lost_error = "no";
  stage.scraper->sample();
  CHECK(stage.page().count("tacho_lost_events_total", {{"probe", "bad"}}) == 1);  // skipped
  CHECK(stage.page().count("tacho_target_condition", {{"target", "a"}, {"condition", "lost_events"}}) == 0);
  stage.health.lost = {1, 2};
  stage.health.lost_error.clear();
  stage.scraper->sample();
  CHECK(stage.page().value("tacho_target_condition", {{"target", "a"}, {"condition", "lost_events"}}) == 0);
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
  stage.good->told->rare = 3;
  CHECK(stage.page().value("tacho_rare_total", {{"target", "a"}}) == 3);
  CHECK(stage.page().count("tacho_bad_rare_total") == 0);
  stage.good->told->rare = 0;  // as a gauge may
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
  stage.good->told->rare = 1;
  CHECK(stage.page().count("tacho_rare_total", {{"target", "a"}}) == 1);
  stage.good->told->rare = 0;
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
  auto& turns = stage.good->told->known.socket.emplace().counters.turns.emplace();
  stage.want({"a"});
  turns.requests = 10;
  stage.good->told->known.socket->duration.slots[1] = 10;
  stage.scraper->sample();
  const Labels no_poll{{"target", "a"}, {"condition", "no_poll"}};
  CHECK(stage.page().count("tacho_target_condition", no_poll) == 0);
  CHECK(stage.page().value("tacho_target_condition", {{"target", "a"}, {"condition", "multiplexed"}}) == 0);
  stage.bad->told->known.poll.emplace();
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

namespace {

/// A step at which a thread stops until it is let go.
class Gate {
 public:
  /// To be called at the step: stops the first time.
  void stop() {
    if (!reached_.exchange(true)) {
      arrived_.set_value();
      open_.get_future().wait();
    }
  }
  void wait_until_reached() { arrived_.get_future().wait(); }
  void open() { open_.set_value(); }

 private:
  std::atomic<bool> reached_ = false;
  std::promise<void> arrived_;
  std::promise<void> open_;
};

/// Whether it ends while others stand at a gate: only what waits for them takes so long.
bool ends(const std::future<void>& work) {
  return work.wait_for(20s) == std::future_status::ready;
}

}  // namespace

TEST_CASE("nothing waits for a page that is being written") {
  Stage stage;
  stage.want({"a"});
  Gate gate;
  stage.good->told->before_read = [&gate] { gate.stop(); };
  auto page = std::async(std::launch::async, [&stage] { return stage.page(); });
  gate.wait_until_reached();
  tacho::config::Config other;
  other.window = 60s;
  std::size_t seen = 0;
  auto change = std::async(std::launch::async, [&] {
    stage.want({"a", "b"});
    stage.scraper->sample();
    stage.scraper->release_forgotten(std::chrono::steady_clock::now());
    stage.scraper->prepare();
    stage.scraper->reconfigure(other);
    stage.scraper->read_by("somebody");
    seen = stage.scraper->view(tacho::scrape::summaries).size();
  });
  const bool ended = ends(change);
  gate.open();
  const Page written = page.get();
  change.get();
  REQUIRE(ended);
  CHECK(seen == 2);
  // A page is of one moment: that in which it was begun.
  CHECK(written.count("tacho_good_total") == 1);
  CHECK(written.count("tacho_target_info") == 1);
  CHECK(stage.page().count("tacho_good_total") == 2);
}

TEST_CASE("a page waits neither for the sampler nor for changes of the targets") {
  Stage stage;
  stage.want({"a"});
  const auto read = [&stage] {
    stage.page();
    std::ignore = stage.scraper->view(tacho::scrape::summaries);
  };
  Gate sampling;
  stage.good->told->before_tick = [&sampling] { sampling.stop(); };
  auto sampler = std::async(std::launch::async, [&stage] { stage.scraper->sample(); });
  sampling.wait_until_reached();
  auto beside_sampler = std::async(std::launch::async, read);
  CHECK(ends(beside_sampler));
  sampling.open();
  sampler.get();
  beside_sampler.get();

  Gate changing;
  stage.good->before_flush = [&changing] { changing.stop(); };
  auto change = std::async(std::launch::async, [&stage] {
    stage.want({"b"});
    return stage.scraper->targets_changed();
  });
  changing.wait_until_reached();
  auto beside_change = std::async(std::launch::async, read);
  CHECK(ends(beside_change));
  changing.open();
  CHECK(change.get());
  beside_change.get();
}

TEST_CASE("what a page reads of a target lives until the page is written, and no longer") {
  Stage stage;
  const auto long_ago = std::chrono::steady_clock::now() - targets::TargetTable::kLongestRest - 1s;
  stage.want({"a"});
  const std::weak_ptr<tacho::probes::Accumulators> read = stage.good->made.at(0);
  Gate gate;
  stage.good->told->before_read = [&gate] { gate.stop(); };
  auto page = std::async(std::launch::async, [&stage] { return stage.page(); });
  gate.wait_until_reached();
  stage.want({}, long_ago);
  CHECK(stage.scraper->release_forgotten(std::chrono::steady_clock::now()));
  CHECK(stage.good->targets.empty());
  stage.want({"b"});
  CHECK(stage.good->targets == std::vector<std::uint32_t>{1});  // the same index
  CHECK_FALSE(read.expired());
  gate.open();
  const Page written = page.get();
  CHECK(written.value("tacho_good_total", {{"target", "a"}}) == 1);
  CHECK(written.count("tacho_good_total", {{"target", "b"}}) == 0);
  CHECK(read.expired());
}

TEST_CASE("pages and views while everything changes are each of one moment") {
  constexpr int kRounds = 60;
  Stage stage;
  std::atomic<bool> over = false;
  std::atomic<int> torn = 0;
  std::atomic<int> pages = 0;
  std::vector<std::thread> readers;
  for (int reader = 0; reader < 3; ++reader) {
    readers.emplace_back([&stage, &over, &torn, &pages, reader] {
      while (!over) {
        stage.scraper->read_by(std::to_string(reader));
        const Page page = stage.page();
        const std::size_t targets = page.count("tacho_good_total");
        torn +=
            static_cast<int>(page.count("tacho_target_info") != targets || page.count("tacho_bad_total") != targets);
        const auto table = stage.scraper->view(tacho::scrape::table_view, tacho::scrape::TableQuery{});
        torn += static_cast<int>(table.rows.size() != table.targets);
        ++pages;
      }
    });
  }
  const auto begin = std::chrono::steady_clock::now();
  for (int round = 0; round < kRounds || pages < kRounds; ++round) {
    // Each hour another: those before are evicted, and their places are used again.
    const auto now = begin + round * 1h;
    const std::string name = "c" + std::to_string(round);
    stage.want({"a", name.c_str()}, now);
    stage.scraper->sample();
    stage.scraper->release_forgotten(now);
    stage.scraper->prepare();
    tacho::config::Config other;
    other.window = round % 2 == 0 ? 10s : 20s;
    stage.scraper->reconfigure(other);
  }
  over = true;
  for (std::thread& reader : readers) {
    reader.join();
  }
  CHECK(torn == 0);
}
