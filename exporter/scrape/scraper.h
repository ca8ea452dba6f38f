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

/// Samples the kernel's accumulators and turns them into expositions. Owns the probes and the state that user space
/// keeps of each target; follows the table of targets as its observer. The mutex guards the table and everything here.
class Scraper final : public targets::TargetObserver {
 public:
  /// @param failed names of probes that are enabled and could not be loaded
  /// @param objects state of the BPF objects, that of the targets first
  Scraper(const config::Config& config, std::vector<std::unique_ptr<probes::Probe>> probes,
          std::vector<std::string> failed, std::vector<kernel::HealthSource> objects, targets::TargetTable& table,
          std::mutex& mutex);

  /// With the mutex held.
  Result<void> target_added(const targets::Target& target) override;
  void target_removed(const targets::Target& target) override;
  [[nodiscard]] bool has_answered(const targets::Target& target) const override;
  /// Without the mutex: waits for the kernel.
  Result<void> targets_changed() override;
  /// Retires targets that ended and whose last values every reader has, and evicts those that ended long ago; takes the
  /// mutex.
  /// @return whether any was evicted
  bool release_forgotten(targets::Time now);
  /// Makes blocks for the next few targets, so that they are counted as soon as they are known; takes the mutex.
  void prepare();
  /// Notes that a reader scrapes; never waits. @param reader distinguishes it from others
  void read_by(std::string_view reader);

  /// Runs the probes' work for which there is no event.
  void look_after(probes::Occasion occasion);
  /// Samples the counters behind the windowed gauges; once a second, takes the mutex.
  void sample();
  /// One exposition; takes the mutex, and notes only which series have appeared. A probe that fails leaves out only its
  /// own families.
  void write_page(PageText& page, metrics::Format format);
  /// The same in one text.
  std::string scrape(metrics::Format format);
  /// Applies other windows and buckets, counters stay; takes the mutex.
  void reconfigure(const config::Config& config);
  /// Sets the source of the web server's counters, while there is one; takes the mutex.
  void observe_web(std::function<WebCounters()> counters);
  /// Sets the source of the rights of tacho's processes; takes the mutex.
  void observe_processes(std::function<std::vector<process::Rights>()> rights);
  /// The rights of tacho's processes, now.
  [[nodiscard]] std::vector<process::Rights> processes();
  /// Sets the result of the last reload; takes the mutex.
  void set_reload_state(const ReloadState& state);
  /// The result of a function of scrape/views.h for the state and the given arguments; takes the mutex.
  template <class Make, class... Given>
  [[nodiscard]] auto view(Make make, Given&&... given) const {
    const std::lock_guard lock(mutex_);
    return make(state_, std::forward<Given>(given)...);
  }

  [[nodiscard]] ReloadState reload_state();

 private:
  /// Whether the target is judged: of one that has ended only the counters' last values matter.
  static bool is_judged(const std::unique_ptr<TargetState>& target) {
    return target && target->target->state == targets::Target::State::live;
  }

  void build_series(TargetState& runtime) const;
  /// Updates what is kept of a target over time.
  void keep(TargetState& runtime, const probes::TargetSample& sample) const;
  using Rows = std::vector<std::pair<const TargetState*, metrics::Row>>;
  /// @param series of the targets, which belong to these families
  void write_families(PageText& page, std::span<const metrics::Family> families, std::size_t series, const Rows& rows,
                      metrics::Format format) const;
  void write_probe(PageText& page, std::size_t number, metrics::Format format, CollectorResult& result);
  /// Families that are computed from what the sampler has stored.
  struct Judgement {
    std::span<const metrics::Family> (*families)();
    std::optional<metrics::Row> (*row)(const TargetState& runtime);  ///< nothing: unavailable
    bool stays = false;                                              ///< with its last value once the target has ended
  };
  static const std::array<Judgement, 4> kJudgements;
  void write_judgement(PageText& page, std::size_t number, metrics::Format format);
  void write_self(std::string& out, metrics::Format format);
  Result<void> add_to_probes(std::uint32_t index);
  /// Reads the state of the objects. @param with_maps and the fill of their maps
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
  std::set<std::string_view> maintenance_;  // probes whose work failed, and was reported
  ReloadState reload_;
  std::function<WebCounters()> web_;
  std::function<std::vector<process::Rights>()> rights_;
  WallClock wall_clock_;
  std::int64_t first_sample_ns_ = 0;
  std::vector<kernel::SkippedEvents> skipped_;  // by source
};

}  // namespace tacho::scrape
