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

// Why requests take as long as they do. Plain rules over what they waited for, now and before; README lists them.

namespace tacho::scrape {

/// Family `tacho_bottleneck`.
std::span<const metrics::Family> bottleneck_families();

/// What is named.
struct Cause {
  enum class Kind : std::uint8_t {
    part,        ///< the part itself
    dependency,  ///< calls to `peer`, while which the part grew
    cpu,         ///< threads that could run wait for a CPU
    quota,       ///< … because the quota of the cgroup is used up
    demand,      ///< more requests come, or all CPUs are busy with them
  };
  Kind kind = Kind::part;
  request_part part = TACHO_PART_OTHER;  ///< that has grown, or in which the time goes
  double seconds = 0;                    ///< a request: more than before if `slower`, else in all; not below 0
  std::uint32_t peer = 0;                ///< slot of a dependency; 0: those beyond max_peers
  std::optional<request_part> behind;    ///< where requests wait for threads that are at `part`
};

struct Diagnosis {
  enum class Verdict : std::uint8_t {
    too_few,    ///< requests to say anything
    unseen,     ///< it is not known what most requests wait for
    steady,     ///< nothing stands out
    contended,  ///< most of the time goes into one wait that is no work, as it did before
    slower,     ///< than before
  };

  using Cause = scrape::Cause;

  Verdict verdict = Verdict::too_few;
  WaitHistory::Periods periods;
  std::optional<Cause> cause;              ///< of `contended`, and of `slower` where one part stands out
  std::optional<request_part> bottleneck;  ///< in which slow requests spend half of their time and more
  bool than_hour = false;                  ///< slower than in the hour before, but not than in the last five minutes

  /// What `slower` compares with.
  [[nodiscard]] const std::optional<Waits>& compared() const { return than_hour ? periods.hour : periods.five_minutes; }
};

/// In which part slow requests spend half of their time and more, by ten of them at least.
std::optional<request_part> bottleneck(const WaitHistory& history);

/// Nothing while there is no history.
std::optional<Diagnosis> diagnose(const WaitHistory& history);

/// Values of bottleneck_families(). A part is there once it was the bottleneck.
/// @param bottleneck now
/// @param seen parts that were the bottleneck so far, by bit
metrics::Row bottleneck_row(std::optional<request_part> bottleneck, std::uint32_t seen);

/// How people are told.
struct Explanation {
  struct Evidence {
    std::string shows;
    std::string query;  ///< in PromQL; of one instance, if `instance` is added
  };

  std::string_view verdict;  ///< too_few, unseen, steady, contended, slower
  std::string cause;         ///< "lock", "dependency 10.0.0.7:5432", "cpu shortage", "cpu quota", "demand"; empty: none
  std::string sentence;      ///< one to three
  std::vector<std::string_view> doubts;  ///< conditions that hold and judge what it is made of; in the sentence, too
  std::vector<Evidence> evidence;
  std::string next;  ///< what to look at; empty: nothing
};

/// @param labels of the target
/// @param peer what the peer of a dependency is called
/// @param doubts conditions that hold and judge what the diagnosis is made of
Explanation explain(const Diagnosis& diagnosis, const targets::Labels& labels, std::string_view peer = {},
                    std::span<const std::string_view> doubts = {});

}  // namespace tacho::scrape
