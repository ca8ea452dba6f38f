#pragma once

#include <string>
#include <vector>

#include "scrape/view.h"

namespace tacho::page {

/// The documents that the page and `tacho top` read, as JSON on one line. Numbers have four significant digits,
/// unavailable values are null, bytes that are not UTF-8 become U+FFFD. Times are in seconds. Histograms are lists of
/// [upper bound, count], without empty buckets; the bound of the last one is null.
///
/// Points are lists by quantity, one number a second, the last one being that of `tick`: an answer to `since` continues
/// the answer before it.

/// GET /api/v1/targets
/// @param absent names of configured targets that match nothing
std::string table_json(const scrape::TableView& view, const std::vector<std::string>& absent);
/// GET /api/v1/history: only the rates.
std::string history_json(const scrape::HistoryView& view);
/// GET /api/v1/target
std::string detail_json(const scrape::DetailView& view);
/// GET /api/v1/slow: the slowest requests of each of the last minutes, the slowest first.
std::string slow_json(const scrape::SlowView& view);
/// GET /api/v1/why: what requests wait for, now and before, and the named cause.
std::string why_json(const scrape::WhyView& view);

}  // namespace tacho::page
