#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <string>

namespace tacho::web {

/// Sources that were served and return. Scarce resources are theirs before they are a stranger's. Strangers, however
/// many, take no regular's place.
class Regulars {
 public:
  using Time = std::chrono::steady_clock::time_point;

  static constexpr std::size_t kMost = 128;
  static constexpr unsigned kVisits = 3;                     ///< that make a stranger a regular,
  static constexpr auto kApart = std::chrono::seconds(1);    ///< least time between two of them
  static constexpr auto kForget = std::chrono::minutes(10);  ///< time after the last one

  void served(const std::string& source, Time now);
  /// Whether it was served before, and is not forgotten.
  [[nodiscard]] bool knows(const std::string& source) const { return sources_.contains(source); }

 private:
  struct Visits {
    Time last;
    unsigned count = 1;
  };

  std::map<std::string, Visits> sources_;
};

}  // namespace tacho::web
