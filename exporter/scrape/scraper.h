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
#include <utility>
#include <vector>

#include "boundary/readers.h"
#include "config/config.h"
#include "kernel/health.h"
#include "kernel/skipped_events.h"
#include "metrics/buckets.h"
#include "metrics/exposition.h"
#include "metrics/family_writer.h"
#include "metrics/series.h"
#include "probes/probe.h"
#include "scrape/families.h"
#include "scrape/kernel_clock.h"
#include "scrape/page_text.h"
#include "scrape/self_metrics.h"
#include "scrape/state.h"
#include "targets/target_table.h"

namespace tacho::scrape {

/// Samples the kernel's accumulators and turns them into expositions. Owns the probes and what user space keeps about
/// each target; follows the table of targets as its observer. The mutex guards the table and everything here.
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
  /// What a function of scrape/views.h makes of the state and of what is given besides; takes the mutex.
  template <class Make, class... Given>
  [[nodiscard]] auto view(Make make, Given&&... given) const {
    const std::lock_guard lock(mutex_);
    return make(state_, std::forward<Given>(given)...);
  }

  [[nodiscard]] ReloadState reload_state();

 private:
  /// Whether there is something to judge: of a target that has ended only the counters' last values matter.
  static bool is_judged(const std::unique_ptr<TargetState>& target) {
    return target && target->target->state == targets::Target::State::live;
  }

  void build_series(TargetState& runtime) const;
  /// Brings what is known of a target over time up to date.
  void keep(TargetState& runtime, const probes::TargetSample& sample) const;
  using Rows = std::vector<std::pair<const TargetState*, metrics::Row>>;
  /// @param series of the targets, which belong to these families
  void write_families(PageText& page, std::span<const metrics::Family> families, std::size_t series, const Rows& rows,
                      metrics::Format format) const;
  void write_probe(PageText& page, std::size_t number, metrics::Format format, CollectorResult& result);
  /// Families that are made of what the sampler has left behind.
  struct Judgement {
    std::span<const metrics::Family> (*families)();
    std::optional<metrics::Row> (*row)(const TargetState& runtime);  ///< nothing: nothing can be said
  };
  static const std::array<Judgement, 3> kJudgements;
  void write_judgement(PageText& page, std::size_t number, metrics::Format format);
  void write_self(std::string& out, metrics::Format format);
  Result<void> add_to_probes(std::uint32_t index);
  /// Looks how the objects do. @param with_maps and how full their maps are
  void look_at_objects(bool with_maps);
  [[nodiscard]] metrics::Losses total_losses() const;
  [[nodiscard]] std::string window_text() const;
  void set_exposition(const config::Config& config);
  [[nodiscard]] metrics::PageStyle style(metrics::Format format) const;

  std::chrono::nanoseconds window_;
  bool run_statistics_;
  std::unique_ptr<metrics::BucketLayout> layout_;
  metrics::HistogramForms forms_;
  FamilySet dropped_;
  std::chrono::system_clock::time_point start_;
  State state_;
  std::vector<kernel::HealthSource> sources_;
  targets::TargetTable& table_;
  std::mutex& mutex_;
  bool unflushed_ = false;
  std::set<std::uint32_t> prepared_;  // vacant indices that have blocks
  boundary::Readers readers_;
  std::vector<CollectorResult> results_;
  std::set<std::string_view> maintenance_;  // probes that could not be looked after, and have been told
  ReloadState reload_;
  std::function<WebCounters()> web_;
  std::function<std::vector<process::Rights>()> rights_;
  WallClock wall_clock_;
  std::int64_t first_sample_ns_ = 0;
  std::vector<kernel::SkippedEvents> skipped_;  // by source
};

}  // namespace tacho::scrape
