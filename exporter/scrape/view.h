#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "boundary/question.h"
#include "kernel/bpf_object.h"
#include "metrics/history.h"
#include "probes/probe.h"
#include "scrape/diagnosis.h"
#include "targets/plan.h"

namespace tacho::scrape {

/// A target at a glance: rates over the window, durations since the start.
struct TargetSummary {
  std::string name;
  targets::Labels labels;
  targets::CgroupIdentity identity;
  bool live = true;
  std::size_t cgroups = 0;
  std::size_t processes = 0;
  double request_rate = 0;                   ///< per second
  double observed_rps = 0;                   ///< sends per second
  double poll_mean = 0;                      ///< seconds
  double saturation = 0;                     ///< 0 … 1, over the window; NaN: unavailable
  probes::SocketSample sockets;              ///< nothing where the probe is off
  probes::PollSample polls;                  ///< the same
  std::vector<std::string_view> conditions;  ///< that hold
  unsigned shed_level = 0;                   ///< now
};

using boundary::find_sort_key;
using boundary::sort_key_name;
using boundary::sort_key_names;
using boundary::SortKey;
using boundary::TableQuery;

struct TableRow {
  std::string id;  ///< of the labels, so it is the same in the next tacho
  TargetSummary summary;
  metrics::Reading recent;  ///< of the last ten seconds
  metrics::Reading last;    ///< of the last second
};

/// The time of a view.
struct ViewTime {
  std::string instance;    ///< of this process: ticks of another one mean nothing to it
  std::uint64_t tick = 0;  ///< seconds since the first sample, and 1
};

struct TableView {
  ViewTime time;
  std::size_t targets = 0;   ///< all
  std::size_t matched = 0;   ///< by the filter
  double rate = 0;           ///< of all, requests per second
  std::uint64_t lost = 0;    ///< events, since the start
  std::size_t unhooked = 0;  ///< hooks that could not be attached
  std::vector<TableRow> rows;
};

struct TargetHistory {
  std::string id;
  std::vector<metrics::Reading> points;  ///< one a second, the latest is the time's
};

struct HistoryView {
  ViewTime time;
  std::vector<TargetHistory> targets;  ///< of those asked for, that exist
};

/// Everything about one target, and how reliably it was counted.
struct DetailView {
  struct Loss {
    std::string_view probe;
    std::string_view reason;
    std::uint64_t events = 0;  ///< of any target, since the start
  };
  struct Hook {
    std::string_view probe;
    kernel::HookState state;
  };

  ViewTime time;
  TableRow row;
  metrics::FineHistogram recent_durations;   ///< of the last ten seconds
  std::array<double, 2> variance{};          ///< of intervals over the window, s², by metrics::Direction
  std::array<double, 2> cv2{};               ///< variance / mean²
  std::string why;                           ///< what its requests wait for, in a sentence; empty: unavailable
  std::vector<metrics::Reading> points;      ///< one a second, the latest is the time's
  std::vector<metrics::HeatColumn> columns;  ///< one every five seconds, the latest is under way
  std::vector<Hook> hooks;
  std::vector<Loss> losses;
};

/// The slowest requests of targets.
struct SlowView {
  static constexpr std::size_t kMostTargets = 50;  ///< in one answer: each may have a hundred requests

  struct Target {
    std::string id;
    std::string name;
    std::vector<probes::SlowRequest> requests;  ///< the slowest first
  };

  ViewTime time;
  std::int64_t now_ns = 0;      ///< CLOCK_MONOTONIC, as the requests' times
  std::vector<Target> targets;  ///< of those asked for, that exist
};

/// The waits of the requests of targets, now and before, and the cause of slow ones.
struct WhyView {
  static constexpr std::size_t kMostTargets = 50;  ///< in one answer

  struct Target {
    std::string id;
    std::string name;
    Diagnosis diagnosis;
    Explanation explanation;
  };

  ViewTime time;
  std::vector<Target> targets;  ///< of those asked for, with the parts of their requests available
};

/// 16 hexadecimal digits that depend on the labels only (FNV-1a).
std::string target_id(const targets::Labels& labels);

/// Whether every word of the filter occurs in the target's names, labels or cgroup, whatever the case of ASCII letters.
bool matches(const targets::DesiredTarget& target, std::string_view filter);

}  // namespace tacho::scrape
