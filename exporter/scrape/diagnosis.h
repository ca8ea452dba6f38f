#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bpf/anatomy.h"
#include "metrics/family.h"
#include "metrics/value.h"
#include "scrape/waits.h"
#include "targets/plan.h"

// Why requests take as long as they do: plain rules over the parts of their time, now and before. README lists the
// rules.

namespace tacho::scrape {

/// Family `tacho_bottleneck`.
std::span<const metrics::Family> bottleneck_families();

/// The cause that is named.
struct Cause {
  enum class Kind : std::uint8_t {
    part,        ///< the part itself
    dependency,  ///< calls to `peer`, during which the part grew
    cpu,         ///< threads that could run wait for a CPU
    quota,       ///< … because the quota of the cgroup is used up
    demand,      ///< more requests arrive, or all CPUs are busy with them
  };
  Kind kind = Kind::part;
  request_part part = TACHO_PART_OTHER;  ///< the part that has grown, or that takes most of the time
  double seconds = 0;                    ///< per request: the growth if `slower`, else the whole; not below 0
  std::uint32_t peer = 0;                ///< slot of a dependency; 0: those beyond max_peers
  std::optional<request_part> behind;    ///< the part in which requests wait for threads that are in `part`
};

struct Diagnosis {
  enum class Verdict : std::uint8_t {
    too_few,    ///< too few requests for a diagnosis
    unseen,     ///< the parts of most requests are unavailable
    steady,     ///< nothing stands out
    contended,  ///< most of the time goes into one wait that is no work, as it did before
    slower,     ///< than before
  };

  using Cause = scrape::Cause;

  Verdict verdict = Verdict::too_few;
  WaitHistory::Periods periods;
  std::optional<Cause> cause;              ///< of `contended`, and of `slower` where one part stands out
  std::optional<request_part> bottleneck;  ///< the part that takes at least half of the time of slow requests
  bool than_hour = false;                  ///< slower than in the hour before, but not than in the last five minutes

  /// The period that `slower` compares with.
  [[nodiscard]] const std::optional<Waits>& compared() const { return than_hour ? periods.hour : periods.five_minutes; }
};

/// The part that takes at least half of the time of slow requests, by ten of them at least.
std::optional<request_part> bottleneck(const WaitHistory& history);

/// Nothing without a history.
std::optional<Diagnosis> diagnose(const WaitHistory& history);

/// Values of bottleneck_families(). A part has a value once it was the bottleneck.
/// @param bottleneck now
/// @param seen parts that were the bottleneck so far, by bit
metrics::Row bottleneck_row(std::optional<request_part> bottleneck, std::uint32_t seen);

/// The diagnosis in words.
struct Explanation {
  struct Evidence {
    std::string shows;
    std::string query;  ///< in PromQL; of one instance, if `instance` is added
  };

  std::string_view verdict;  ///< too_few, unseen, steady, contended, slower
  std::string cause;         ///< "lock", "dependency 10.0.0.7:5432", "cpu shortage", "cpu quota", "demand"; empty: none
  std::string sentence;      ///< one to three
  std::vector<std::string_view> doubts;  ///< conditions that hold and are about its input; in the sentence, too
  std::vector<Evidence> evidence;
  std::string next;  ///< the next thing to check; empty: none
};

/// @param labels of the target
/// @param peer name of a dependency's peer
/// @param doubts conditions that hold and are about the input of the diagnosis
Explanation explain(const Diagnosis& diagnosis, const targets::Labels& labels, std::string_view peer = {},
                    std::span<const std::string_view> doubts = {});

}  // namespace tacho::scrape
