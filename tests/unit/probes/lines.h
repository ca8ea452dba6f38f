#pragma once

#include <array>
#include <catch2/catch.hpp>
#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>

#include "metrics/appearance.h"
#include "metrics/buckets.h"
#include "metrics/family.h"
#include "metrics/series.h"
#include "metrics/value.h"

// What a decoded row looks like on the page, so that a test names series and not positions.

namespace tacho::probes::test {

/// The lines of a target without labels of its own: `tacho_x_total{direction="send"}` → "3". Also those at 0 that have
/// not appeared yet.
inline std::map<std::string, std::string> lines(std::span<const metrics::Family> families, const metrics::Row& row) {
  const metrics::BucketLayout layout(4);
  const std::array<std::pair<std::string, std::string>, 1> labels{{{"target", "t"}}};
  const metrics::TargetSeries series(families, labels, layout);
  std::string text;
  for (std::size_t family = 0; family < families.size(); ++family) {
    series.append(text, family, row);
  }
  std::map<std::string, std::string> found;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = text.find('\n', begin);
    const std::size_t space = text.rfind(' ', end);
    std::string name = text.substr(begin, space - begin);
    if (const auto at = name.find("target=\"t\","); at != std::string::npos) {
      name.erase(at, std::string("target=\"t\",").size());
    } else if (const auto alone = name.find("{target=\"t\"}"); alone != std::string::npos) {
      name.erase(alone);
    }
    CAPTURE(name);
    CHECK(found.emplace(std::move(name), text.substr(space + 1, end - space - 1)).second);
    begin = end + 1;
  }
  return found;
}

/// The lines that are exported of a target when it is read for the first time.
inline std::map<std::string, std::string> first_lines(std::span<const metrics::Family> families, metrics::Row row) {
  metrics::Appearance().apply(families, row);
  return lines(families, row);
}

/// Checks that a row has the samples that its families promise.
inline void check_shape(std::span<const metrics::Family> families, const metrics::Row& row) {
  std::size_t values = 0;
  std::size_t histograms = 0;
  std::size_t fine = 0;
  std::set<std::size_t> dynamic;
  for (std::size_t i = 0; i < families.size(); ++i) {
    if (families[i].dynamic()) {
      dynamic.insert(i);
    } else if (families[i].type == metrics::Type::histogram) {
      (families[i].fine ? fine : histograms) += families[i].samples();
    } else {
      values += families[i].samples();
    }
  }
  CHECK(row.values.size() == values);
  CHECK(row.histograms.size() == histograms);
  CHECK(row.fine.size() == fine);
  for (const auto& sample : row.dynamic) {
    CAPTURE(sample.family, sample.label_value);
    CHECK(dynamic.contains(sample.family));
  }
}

}  // namespace tacho::probes::test
