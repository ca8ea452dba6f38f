#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "boundary/readers.h"
#include "config/config.h"
#include "kernel/health.h"
#include "kernel/skipped_events.h"
#include "metrics/buckets.h"
#include "metrics/exposition.h"
#include "metrics/family_writer.h"
#include "metrics/series.h"
#include "metrics/window.h"
#include "probes/probe.h"
#include "scrape/conditions.h"
#include "scrape/diagnosis.h"
#include "scrape/families.h"
#include "scrape/kernel_clock.h"
#include "scrape/page_text.h"
#include "scrape/saturation.h"
#include "scrape/self_metrics.h"
#include "scrape/view.h"
#include "scrape/waits.h"
#include "targets/target_table.h"

namespace tacho::scrape {

/// Turns the kernel's accumulators into expositions. Owns the probes and what user space keeps about each target;
/// follows the table of targets as its observer. The mutex guards the table and everything here.
class Scraper final : public targets::TargetObserver {
 public:
  /// @param failed names of probes that are enabled and could not be loaded
  /// @param objects how the BPF objects do, that of the targets first
  Scraper(const config::Config& config, std::vector<std::unique_ptr<probes::Probe>> probes,
          std::vector<std::string> failed, std::vector<kernel::HealthSource> objects, targets::TargetTable& table,
          std::mutex& mutex);

  /// With the mutex held.
  Result<void> target_added(const targets::Target& target) override;
  void target_removed(const targets::Target& target) override;
  [[nodiscard]] bool has_answered(const targets::Target& target) const override;
  /// Without it: waits for the kernel.
  Result<void> targets_changed() override;
  /// Hides targets that ended and that every reader has seen since, frees those that ended long ago; takes the mutex.
  /// @return whether any was freed
  bool release_forgotten(targets::Time now);
  /// Makes blocks for the next few targets, so that they are counted as soon as they are known; takes the mutex.
  void prepare();
  /// Somebody reads an exposition; waits for nobody. @param reader what tells it from others
  void read_by(std::string_view reader);

  /// Has the probes look after what no event tells.
  void look_after(probes::Occasion occasion);
  /// Samples the counters behind the windowed gauges; once a second, takes the mutex.
  void sample();
  /// One exposition; takes the mutex, changes nothing. One probe that fails leaves out its own families only.
  void write_page(PageText& page, metrics::Format format);
  /// The same in one text.
  std::string scrape(metrics::Format format);
  /// Other windows and buckets from now on, counters stay; takes the mutex.
  void reconfigure(const config::Config& config);
  /// Where the web server's counters are from, while there is one; takes the mutex.
  void observe_web(std::function<WebCounters()> counters);
  /// Where it is known what tacho's processes may do; takes the mutex.
  void observe_processes(std::function<std::vector<process::Rights>()> rights);
  /// The same, now.
  [[nodiscard]] std::vector<process::Rights> processes();
  /// What the last reload came to; takes the mutex.
  void set_reload_state(const ReloadState& state);
  /// Takes the mutex.
  [[nodiscard]] std::vector<TargetSummary> summaries();

  /// A part of the table of targets; takes the mutex.
  [[nodiscard]] TableView table(const TableQuery& query);
  /// Seconds after the tick `since` of the targets with these ids; takes the mutex.
  [[nodiscard]] HistoryView history(std::span<const std::string> ids, std::uint64_t since);
  /// One target, with its history after the tick `since`; nothing if no target has that id. Takes the mutex.
  [[nodiscard]] std::optional<DetailView> detail(std::string_view id, std::uint64_t since);
  /// The slowest requests of the last minutes of the targets with these ids, of the first SlowView::kMostTargets of
  /// them; takes the mutex.
  [[nodiscard]] SlowView slowest(std::span<const std::string> ids);
  /// What the requests of the targets with these ids wait for, of the first WhyView::kMostTargets of them; takes the
  /// mutex.
  [[nodiscard]] WhyView why(std::span<const std::string> ids);

  [[nodiscard]] ReloadState reload_state();

 private:
  /// What user space keeps about a target.
  struct Runtime {
    const targets::Target* target = nullptr;
    std::string id;
    metrics::History history;
    metrics::Window window;
    std::unique_ptr<WaitHistory> waits;         // from the first request on of which it is known what it waits for
    std::uint64_t requests = 0;                 // as of the last sample
    std::optional<request_part> bottleneck;     // the same
    std::uint32_t bottlenecks = 0;              // parts that were one, by bit
    std::vector<metrics::TargetSeries> series;  // by probe, then of kJudgements
    metrics::ProtoTarget proto;

    explicit Runtime(std::chrono::nanoseconds length) : window(length) {}
    [[nodiscard]] probes::Look look(bool in_detail) const {
      return {target->ref.index, kernel_now_ns(), target->wanted.identity.path, in_detail};
    }
    /// What holds over the window.
    [[nodiscard]] Conditions conditions() const {
      const auto samples = window.samples();
      return samples.empty() ? Conditions{}
                             : scrape::conditions(samples.front(), samples.back(), window.gauges().few_samples);
    }
  };

  /// Whether there is a target that shows: one that rests is only kept up to date, a new one waits for the kernel.
  static bool shows(const std::unique_ptr<Runtime>& runtime) {
    return runtime && runtime->target->counts && runtime->target->state != targets::Target::State::resting;
  }
  /// Whether there is something to judge: of a target that has ended only the counters' last values matter.
  static bool is_judged(const std::unique_ptr<Runtime>& runtime) {
    return runtime && runtime->target->state == targets::Target::State::live;
  }

  void build_series(Runtime& runtime) const;
  [[nodiscard]] probes::TargetSample sample(const Runtime& runtime, bool in_detail) const;
  /// Brings what is known of a target over time up to date.
  void keep(Runtime& runtime, const probes::TargetSample& sample) const;
  using Rows = std::vector<std::pair<const Runtime*, metrics::Row>>;
  /// @param series of the runtimes, which belong to these families
  void write_families(PageText& page, std::span<const metrics::Family> families, std::size_t series, const Rows& rows,
                      metrics::Format format) const;
  void write_probe(PageText& page, std::size_t number, metrics::Format format, CollectorResult& result);
  /// Families that are made of what the sampler has left behind.
  struct Judgement {
    std::span<const metrics::Family> (*families)();
    std::optional<metrics::Row> (*row)(const Runtime& runtime);  ///< nothing: nothing can be said
  };
  static const std::array<Judgement, 3> kJudgements;
  void write_judgement(PageText& page, std::size_t number, metrics::Format format);
  void write_self(std::string& out, metrics::Format format);
  Result<void> add_to_probes(std::uint32_t index);
  /// Looks how the objects do. @param with_maps and how full their maps are
  void look_at_objects(bool with_maps);
  [[nodiscard]] metrics::Losses total_losses() const;
  [[nodiscard]] TargetSummary summarize(const Runtime& runtime) const;
  [[nodiscard]] TableRow row(const Runtime& runtime) const;
  [[nodiscard]] const Runtime* find(std::string_view id) const;
  [[nodiscard]] std::optional<WhyView::Target> explain(const Runtime& runtime,
                                                       std::span<const probes::Dependency> dependencies) const;
  /// NaN if nothing can be said.
  static double saturation_of(const Runtime& runtime);
  static double sort_value(const Runtime& runtime, SortKey key);
  [[nodiscard]] std::string window_text() const;
  void set_exposition(const config::Config& config);
  [[nodiscard]] metrics::PageStyle style(metrics::Format format) const;

  std::chrono::nanoseconds window_;
  bool run_statistics_;
  std::unique_ptr<metrics::BucketLayout> layout_;
  metrics::HistogramForms forms_;
  FamilySet dropped_;
  std::chrono::system_clock::time_point start_;
  std::vector<std::unique_ptr<probes::Probe>> probes_;
  std::vector<std::string> failed_;
  std::vector<kernel::HealthSource> sources_;
  targets::TargetTable& table_;
  std::mutex& mutex_;
  std::vector<std::unique_ptr<Runtime>> runtimes_;  // by index
  bool unflushed_ = false;
  std::set<std::uint32_t> prepared_;  // vacant indices that have blocks
  boundary::Readers readers_;
  std::vector<CollectorResult> results_;
  std::set<std::string_view> maintenance_;  // probes that could not be looked after, and have been told
  ReloadState reload_;
  std::function<WebCounters()> web_;
  std::function<std::vector<process::Rights>()> rights_;
  WallClock wall_clock_;
  std::string instance_;
  std::uint64_t tick_ = 0;  // of the last sample: seconds since the first one, and 1
  std::int64_t first_sample_ns_ = 0;
  metrics::Losses losses_;                      // as of the last sample
  std::vector<ObservedObject> objects_;         // by source, as of the last look
  std::vector<kernel::SkippedEvents> skipped_;  // the same
};

}  // namespace tacho::scrape
