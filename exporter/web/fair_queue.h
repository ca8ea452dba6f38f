#pragma once

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>

namespace tacho::web {

/// Who waits: the sources take turns, and each has its oldest served first.
template <class T>
class FairQueue {
 public:
  void push(const std::string& source, T value) {
    lines_[source].push_back(std::move(value));
    ++size_;
  }

  std::optional<T> pop() {
    if (lines_.empty()) {
      return std::nullopt;
    }
    auto next = lines_.upper_bound(last_);
    if (next == lines_.end()) {
      next = lines_.begin();
    }
    last_ = next->first;
    std::optional<T> value(std::move(next->second.front()));
    next->second.pop_front();
    forget_if_empty(next);
    return value;
  }

  /// The one who came last of those that have most in line.
  std::optional<T> pop_newest_of_largest() {
    const auto largest = std::ranges::max_element(lines_, {}, [](const auto& line) { return line.second.size(); });
    if (largest == lines_.end()) {
      return std::nullopt;
    }
    std::optional<T> value(std::move(largest->second.back()));
    largest->second.pop_back();
    forget_if_empty(largest);
    return value;
  }

  [[nodiscard]] std::size_t size() const { return size_; }

 private:
  using Lines = std::map<std::string, std::deque<T>>;

  void forget_if_empty(typename Lines::iterator line) {
    --size_;
    if (line->second.empty()) {
      lines_.erase(line);
    }
  }

  Lines lines_;
  std::string last_;
  std::size_t size_ = 0;
};

}  // namespace tacho::web
