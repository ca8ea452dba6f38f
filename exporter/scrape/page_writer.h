#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/guarded.h"
#include "kernel/health.h"
#include "metrics/appearance.h"
#include "metrics/exposition.h"
#include "metrics/family_writer.h"
#include "scrape/kernel_clock.h"
#include "scrape/page_text.h"
#include "scrape/state.h"

namespace tacho::scrape {

/// Writes the pages of metrics: of the latest state that was published, and of what the accumulators of its targets
/// have counted until now. It changes nothing that others see. What a page has to know of the ones before is kept here.
class PageWriter {
 public:
  /// @param objects state of the BPF objects, in the order of those in a State; lives as long as the writer
  PageWriter(const Published& published, std::span<const kernel::HealthSource> objects);

  /// One exposition; pages are written one after the other, and nothing else waits for one. A probe that fails leaves
  /// out only its own families.
  void write(PageText& page, metrics::Format format);

  /// Sets the source of the web server's counters, while there is one; from any thread.
  void observe_web(std::function<WebCounters()> counters) { web_.set(std::move(counters)); }
  /// Sets the source of the rights of tacho's processes; from any thread.
  void observe_processes(std::function<std::vector<process::Rights>()> rights) { rights_.set(std::move(rights)); }
  /// The rights of tacho's processes, now.
  [[nodiscard]] std::vector<process::Rights> processes() const;

 private:
  using Rows = std::vector<std::pair<const TargetState*, metrics::Row>>;
  /// What was on the pages of one target.
  struct Shown {
    std::uint32_t epoch = 0;
    std::vector<metrics::Appearance> appeared;  ///< by probe
  };

  Shown& shown(const TargetState& target, std::size_t probes);
  /// What a probe has of all targets that are shown; valid until the next call.
  std::span<const Rows::value_type> read(const State& state, std::size_t probe, metrics::Format format);
  [[nodiscard]] metrics::PageStyle style(const State& state, metrics::Format format) const;
  /// @param series of the targets, which belong to these families
  void write_families(PageText& page, const State& state, std::span<const metrics::Family> families, std::size_t series,
                      std::span<const Rows::value_type> rows, metrics::Format format) const;
  CollectorResult write_probe(PageText& page, const State& state, std::size_t number, metrics::Format format);
  void write_judgement(PageText& page, const State& state, std::size_t number, metrics::Format format) const;
  void write_self(std::string& out, const State& state, std::vector<CollectorResult> results, metrics::Format format);
  /// The objects, with the fill of their maps.
  std::vector<ObservedObject> look_at_objects(const std::vector<ObservedObject>& sampled);

  const Published& published_;
  std::span<const kernel::HealthSource> objects_;
  const std::chrono::system_clock::time_point start_;
  Guarded<std::function<WebCounters()>> web_;
  Guarded<std::function<std::vector<process::Rights>()>> rights_;
  std::mutex mutex_;  // of a page, as is what follows
  WallClock wall_clock_;
  // With the memory of the page before: 10 KiB a target that would be taken and given back for each, in pieces among
  // those of the thread that owns the targets, which would stay where they are.
  Rows rows_;
  std::vector<Shown> shown_;            // by index
  std::vector<std::uint64_t> skipped_;  // by object, latest exported
};

}  // namespace tacho::scrape
