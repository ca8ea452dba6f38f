#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace tacho::targets {

/// The log lines about targets that appear and end: one line at once, then at most one in ten seconds with everything
/// since.
class TargetNews {
 public:
  using Time = std::chrono::steady_clock::time_point;
  static constexpr std::chrono::seconds kSpacing{10};

  void note(const std::vector<std::string>& came, const std::vector<std::string>& went);
  /// The line that is due, if there is one.
  /// @param live how many targets there are now
  std::optional<std::string> line(Time now, std::size_t live);

 private:
  std::vector<std::string> came_;
  std::vector<std::string> went_;
  std::optional<Time> said_;
};

}  // namespace tacho::targets
