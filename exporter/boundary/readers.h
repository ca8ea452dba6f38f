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

/// The readers of the metrics and their intervals: the last values of a target have to be reported to each reader. It
/// has a lock of its own, so that accepting requests does not wait for a scrape.
class Readers {
 public:
  using Time = std::chrono::steady_clock::time_point;

  /// @param reader distinguishes it from others: its address, a space, its name
  void scraped(std::string_view reader, Time now);

  /// Targets that ended before this time have been reported to every reader, for two of its intervals and one scrape at
  /// least. Time::min() while there is no reader.
  [[nodiscard]] Time all_have_seen(Time now);

  /// A page is begun. @return when the first of the requests that it answers arrived
  [[nodiscard]] Time page_begun(Time now);

  /// A message for the operator if a page took longer than the interval of some reader.
  [[nodiscard]] std::optional<std::string> complaint(std::chrono::steady_clock::duration took);

 private:
  static constexpr std::size_t kGaps = 8;
  struct Reader {
    Time first;
    Time last;
    std::array<std::chrono::steady_clock::duration, kGaps> gaps{};
    std::size_t seen = 0;  ///< gaps
    [[nodiscard]] std::chrono::steady_clock::duration interval() const;
  };

  // With the mutex held:
  void forget_gone(Time now);
  void forget_one();

  std::mutex mutex_;
  std::map<std::string, Reader, std::less<>> readers_;
  std::optional<Time> asked_;  // since the last page was begun
};

}  // namespace tacho::boundary
