#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "web/reserve.h"

namespace tacho::web {

/// The waiting entries. The sources take turns, and each has its oldest entry served first. While known sources wait,
/// they have three of four turns: strangers, however many, wait for each other.
template <class T>
class FairQueue {
 public:
  void push(const std::string& source, T value, bool known = false) {
    Line& line = sides_[known ? 0 : 1].lines[source];
    line.values.push_back(std::move(value));
    line.newest = ++pushes_;
    ++size_;
  }

  std::optional<T> pop() {
    constexpr std::uint64_t kTurns = 4;
    const bool strangers = sides_[0].lines.empty() || (++turns_ % kTurns == 0 && !sides_[1].lines.empty());
    Side& side = sides_[strangers ? 1 : 0];
    if (side.lines.empty()) {
      return std::nullopt;
    }
    auto next = side.lines.upper_bound(side.last);
    if (next == side.lines.end()) {
      next = side.lines.begin();
    }
    side.last = next->first;
    std::optional<T> value(std::move(next->second.values.front()));
    next->second.values.pop_front();
    forget_if_empty(side, next);
    return value;
  }

  /// The latest entry of the source that has most in line. Known sources keep some places, but all of them half of the
  /// line at most: a stranger finds one, also where many known ones hold as many as they may.
  /// @param places that the line has
  std::optional<T> pop_newest_of_largest(std::size_t places) {
    const std::size_t kept = kept_by_each(places, sides_[0].lines.size());
    Side* largest_side = nullptr;
    typename Lines::iterator largest;
    std::pair<std::size_t, std::uint64_t> most;
    for (Side& side : sides_) {
      for (auto line = side.lines.begin(); line != side.lines.end(); ++line) {
        const std::size_t count = line->second.values.size();
        const std::size_t weight = &side == sides_.data() ? count - std::min(count, kept) : count;
        if (const std::pair rank(weight, line->second.newest); largest_side == nullptr || rank > most) {
          largest_side = &side;
          largest = line;
          most = rank;
        }
      }
    }
    if (largest_side == nullptr) {
      return std::nullopt;
    }
    std::optional<T> value(std::move(largest->second.values.back()));
    largest->second.values.pop_back();
    forget_if_empty(*largest_side, largest);
    return value;
  }

  [[nodiscard]] std::size_t size() const { return size_; }

 private:
  struct Line {
    std::deque<T> values;
    std::uint64_t newest = 0;
  };
  using Lines = std::map<std::string, Line>;
  struct Side {
    Lines lines;
    std::string last;
  };

  void forget_if_empty(Side& side, typename Lines::iterator line) {
    --size_;
    if (line->second.values.empty()) {
      side.lines.erase(line);
    }
  }

  std::array<Side, 2> sides_;  // of known sources, of strangers
  std::uint64_t pushes_ = 0;
  std::uint64_t turns_ = 0;
  std::size_t size_ = 0;
};

}  // namespace tacho::web
