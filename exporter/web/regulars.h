#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

namespace tacho::web {

/// Memory in which regulars outlive the process that met them. Who reads it believes no more of it than that somebody
/// with such a name came at such a time.
struct RegularsMemory {
  static constexpr std::size_t kMost = 128;
  struct Entry {
    std::array<char, 48> source;  ///< ends with a zero byte
    std::int64_t last_ns;         ///< of the steady clock, which all processes share
    std::uint32_t visits;         ///< 0: the entry is free
  };
  std::array<Entry, kMost> entries = {};
};

/// Sources that were served and return. Scarce resources are theirs before they are a stranger's. Strangers, however
/// many, take no regular's place.
class Regulars {
 public:
  using Time = std::chrono::steady_clock::time_point;

  /// @param memory of another process, which has ended; none: nobody is known, and nobody will be told
  explicit Regulars(RegularsMemory* memory = nullptr, Time now = std::chrono::steady_clock::now());

  static constexpr std::size_t kMost = RegularsMemory::kMost;
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

  void visit(const std::string& source, Time now);
  void remember();

  std::map<std::string, Visits> sources_;
  RegularsMemory* memory_;
};

}  // namespace tacho::web
