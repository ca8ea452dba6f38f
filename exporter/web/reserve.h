#pragma once

#include <algorithm>
#include <cstddef>

namespace tacho::web {

/// Places, connections or pages that a source keeps at most that was served before.
inline constexpr std::size_t kKept = 16;

/// How many of `places` each of these sources keeps. All of them keep half at most: there is room for who comes for the
/// first time, also where many that came before hold as many as they may.
constexpr std::size_t kept_by_each(std::size_t places, std::size_t known_sources) {
  return std::min(kKept, places / 2 / std::max<std::size_t>(known_sources, 1));
}

}  // namespace tacho::web
