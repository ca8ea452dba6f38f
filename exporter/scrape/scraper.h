#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
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
#include "metrics/exposition.h"
#include "metrics/window.h"
#include "probes/probe.h"
#include "scrape/page_text.h"
#include "scrape/page_writer.h"
#include "scrape/self_metrics.h"
#include "scrape/shed_report.h"
#include "scrape/shedding.h"
#include "scrape/state.h"
#include "targets/target_table.h"

namespace tacho::scrape {

/// Samples the kernel's accumulators. Owns the probes and the state that user space keeps of each target; follows the
/// table of targets as its observer. It belongs to one thread, that of the table: once a second and with every change
/// it publishes a state. Others call only what is marked so; that reads the latest state, and waits for nobody.
class Scraper final : public targets::TargetObserver {
 public:
  /// @param failed names of probes that are enabled and could not be loaded
  /// @param objects state of the BPF objects, that of the targets first
  Scraper(const config::Config& config, std::vector<std::unique_ptr<probes::Probe>> probes,
          std::vector<std::string> failed, std::vector<kernel::HealthSource> objects, targets::TargetTable& table);

  Result<void> target_added(const targets::Target& target) override;
  void target_removed(const targets::Target& target) override;
  [[nodiscard]] bool has_answered(const targets::Target& target) const override;
  Result<void> targets_changed() override;
  void targets_known() override;
  /// Retires targets that ended and whose last values every reader has, and evicts those that ended long ago.
  /// @return whether any was evicted
  bool release_forgotten(targets::Time now);
  /// Makes blocks for the next few targets, so that they are counted as soon as they are known.
  void prepare();
  /// Runs the probes' work for which there is no event.
  void look_after(probes::Occasion occasion);
  /// Samples the counters behind the windowed gauges; once a second.
  void sample();
  /// Sets the function that passes a target's level of shedding on to the programs.
  void on_shed(std::function<void(target_ref, ShedLevel)> callback) { on_shed_ = std::move(callback); }
  /// Applies other windows and buckets, counters stay.
  void reconfigure(const config::Config& config);
  /// Sets the result of the last reload.
  void set_reload_state(const ReloadState& state);
  [[nodiscard]] ReloadState reload_state() const { return reload_; }

  // From any thread.

  /// Notes that a reader scrapes; never waits. @param reader distinguishes it from others
  void read_by(std::string_view reader);
  /// One exposition. A probe that fails leaves out only its own families.
  void write_page(PageText& page, metrics::Format format) { pages_.write(page, format); }
  /// The same in one text.
  std::string scrape(metrics::Format format);
  /// The result of a function of scrape/views.h for the latest state and the given arguments.
  template <class Make, class... Given>
  [[nodiscard]] auto view(Make make, Given&&... given) const {
    const std::shared_ptr<const State> state = published_.get();
    return make(*state, std::forward<Given>(given)...);
  }
  /// Sets the source of the web server's counters, while there is one.
  void observe_web(std::function<WebCounters()> counters) { pages_.observe_web(std::move(counters)); }
  /// Sets the source of the rights of tacho's processes.
  void observe_processes(std::function<std::vector<process::Rights>()> rights) {
    pages_.observe_processes(std::move(rights));
  }
  /// The rights of tacho's processes, now.
  [[nodiscard]] std::vector<process::Rights> processes() const { return pages_.processes(); }

 private:
  using Accumulators = std::vector<std::shared_ptr<probes::Accumulators>>;

  /// What is kept of a target, and published.
  struct Kept {
    const targets::Target* target = nullptr;
    std::shared_ptr<Past> past;
    metrics::Window window;
    std::uint64_t requests = 0;  ///< as of the last sample
    std::shared_ptr<const TargetState> published;
    Shed shed;
    ShedSeen shed_seen;                                     // as of the last sample
    ShedInput shed_input;                                   // between the last two
    std::array<std::int64_t, TACHO_SHED_LEVELS> shed_at{};  // when a level was at least this; 0: never
    std::vector<std::size_t> lacking{};                     // probes that do not watch it yet

    /// The highest level over the window; none if it never had one.
    [[nodiscard]] std::optional<ShedLevel> highest_shed() const;
  };

  void set_texts();
  [[nodiscard]] std::shared_ptr<const Lines> lines_of(const targets::Target& target, metrics::Created created) const;
  /// Takes a sample, and updates what is kept of the target over time.
  void sample(Kept& kept) const;
  /// Publishes what the samples say.
  void find(Kept& kept) const;
  /// Keeps the cost of the programs within the limits.
  void shed(std::int64_t now_ns);
  /// What the probes have of a new target.
  struct Additions {
    Accumulators accumulators;         ///< by probe
    std::vector<std::size_t> lacking;  ///< probes that could not take it
    Error error;                       ///< of the last of them
  };
  Additions add_to_probes(std::uint32_t index);
  /// Whether a target is not to be watched if these probes lack it.
  [[nodiscard]] bool is_pointless(std::span<const std::size_t> lacking) const;
  void remove_from_probes(std::uint32_t index, std::span<const std::size_t> lacking);
  struct Retried {
    bool any = false;            ///< a target got a probe that it lacked
    Result<void> still_lacking;  ///< an error if some targets lack one
  };
  Retried add_to_lacking_probes();
  /// Reads the state of the objects.
  void look_at_objects();
  [[nodiscard]] metrics::Losses total_losses() const;
  /// Passes on what is known now.
  void publish();
  /// Takes over what the table says of all targets. @return whether that is news
  bool follow_table();

  const std::vector<std::unique_ptr<probes::Probe>> probes_;
  const std::vector<std::string> failed_;  // probes that could not be loaded
  const std::vector<kernel::HealthSource> sources_;
  const std::string instance_;  // of this process
  targets::TargetTable& table_;
  std::shared_ptr<const Style> style_;
  std::vector<std::shared_ptr<const metrics::SeriesText>> texts_;  // by probe, then of what is judged; for that style
  std::vector<std::unique_ptr<Kept>> targets_;                     // by index
  std::map<std::uint32_t, Accumulators> prepared_;                 // of vacant indices
  std::shared_ptr<const std::vector<ObservedObject>> objects_;     // as of the last sample
  metrics::Losses losses_;                                         // the same
  std::vector<std::uint64_t> lost_;                                // by object, when that was read last
  bool losses_known_ = true;                                       // of all objects, as of the last sample
  std::set<std::size_t> unreadable_;  // objects whose losses were not, and that was reported
  std::uint64_t tick_ = 0;            // of the last sample
  std::int64_t first_sample_ns_ = 0;
  config::Limits limits_;
  Shedding shedding_;
  std::function<void(target_ref, ShedLevel)> on_shed_ = [](target_ref, ShedLevel) {};
  std::int64_t last_shed_ns_ = 0;
  bool unflushed_ = false;
  bool adopt_more_ = false;  // targets got a probe that they had lacked, which was not flushed yet
  std::map<std::pair<std::string_view, probes::Occasion>, std::string>
      maintenance_;  // what failed last, and was reported
  ReloadState reload_;
  boundary::Readers readers_;
  Published published_;
  PageWriter pages_{published_, sources_};
};

}  // namespace tacho::scrape
