#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "metrics/value.h"

namespace tacho::metrics {

/// Adds up two values of one kind.
Value sum(const Value& a, const Value& b);

/// Calls `write(label, sample)` for a family's samples whose label values are known at run time only, in the byte order
/// of those values as `spell(out, value)` appends them; samples whose values become equal are added up.
template <class Spell, class Write>
void for_each_dynamic(const Row& row, std::size_t family, Spell spell, Write write) {
  using Found = std::pair<std::string, const DynamicSample*>;
  std::vector<Found> found;
  for (const DynamicSample& sample : row.dynamic) {
    if (sample.family == family) {
      spell(found.emplace_back("", &sample).first, sample.label_value);
    }
  }
  std::ranges::sort(found, {}, &Found::first);

  for (auto it = found.begin(); it != found.end();) {
    const auto next = std::ranges::find_if(it, found.end(), [&](const Found& f) { return f.first != it->first; });
    if (next - it == 1) {
      write(it->first, *it->second);
    } else {
      DynamicSample merged = *it->second;
      std::for_each(it + 1, next, [&](const Found& f) {
        merged.value = sum(merged.value, f.second->value);
        merged.histogram += f.second->histogram;
      });
      write(it->first, merged);
    }
    it = next;
  }
}

}  // namespace tacho::metrics
