#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <string>

namespace tacho::web {

/// Sources that were given what they asked for, and come again: what there is not enough of is theirs before it is a
/// stranger's. Strangers, however many, take no regular's place.
class Regulars {
 public:
  using Time = std::chrono::steady_clock::time_point;

  static constexpr std::size_t kMost = 128;
  static constexpr unsigned kVisits = 3;                     ///< make a regular of a stranger,
  static constexpr auto kApart = std::chrono::seconds(1);    ///< so far apart
  static constexpr auto kForget = std::chrono::minutes(10);  ///< after the last one

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
