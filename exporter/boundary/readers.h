#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

namespace tacho::boundary {

/// Who reads the metrics, and how often: what a target counted last has to be there for each of them. Has a lock of its
/// own: who takes requests must not wait for a scrape.
class Readers {
 public:
  using Time = std::chrono::steady_clock::time_point;

  /// @param reader what tells it from others
  void scraped(std::string_view reader, Time now);

  /// What ended before this has been there for every reader, for two of its intervals and one scrape at least.
  /// Time::min() while there is no reader.
  [[nodiscard]] Time all_have_seen(Time now);

  /// A page is begun. @return since when the first of those waits whom it is for
  [[nodiscard]] Time page_begun(Time now);

  /// What an operator should hear of a page that took longer than somebody's interval.
  [[nodiscard]] std::optional<std::string> complaint(std::chrono::steady_clock::duration took);

 private:
  static constexpr std::size_t kGaps = 8;
  struct Reader {
    Time last;
    std::array<std::chrono::steady_clock::duration, kGaps> gaps{};
    std::size_t seen = 0;  ///< gaps
    [[nodiscard]] std::chrono::steady_clock::duration interval() const;
  };

  void forget_gone(Time now);  // with the mutex held

  std::mutex mutex_;
  std::map<std::string, Reader, std::less<>> readers_;
  std::optional<Time> asked_;  // since the last page was begun
};

}  // namespace tacho::boundary
