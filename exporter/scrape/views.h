#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "scrape/state.h"
#include "scrape/view.h"

// Views for people: the table of targets, their last minutes, one target. A view costs only what it shows: a table of a
// thousand targets is sorted by stored numbers, and samples are taken only for the rows that are requested.
// Any thread may call them, by Scraper::view().

namespace tacho::scrape {

/// The summaries of all targets.
std::vector<TargetSummary> summaries(const State& state);

/// A part of the table of targets.
TableView table_view(const State& state, const TableQuery& query);

/// Seconds after the tick `since` of the targets with these ids.
HistoryView history_view(const State& state, std::span<const std::string> ids, std::uint64_t since);

/// One target, with its history after the tick `since`; nothing if no target has that id.
std::optional<DetailView> detail_view(const State& state, std::string_view id, std::uint64_t since);

/// The slowest requests of the last minutes of the targets with these ids, of the first SlowView::kMostTargets of them.
SlowView slow_view(const State& state, std::span<const std::string> ids);

/// The waits of the requests of the targets with these ids, of the first WhyView::kMostTargets of them.
WhyView why_view(const State& state, std::span<const std::string> ids);

}  // namespace tacho::scrape
