#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tacho::kernel {

/// First and last of each range of a list of CPUs as the kernel writes it, "0-3,8"; nothing if it is none.
std::optional<std::vector<std::pair<unsigned, unsigned>>> parse_cpu_ranges(std::string_view text);

/// A CPU that is online, and what it shares with others: the smallest CPU number of those that share it tells which.
struct Cpu {
  unsigned number = 0;
  unsigned cache = 0;  ///< of the last level
  unsigned core = 0;

  bool operator==(const Cpu&) const = default;
};

/// The CPUs of the machine.
struct Cpus {
  unsigned end = 1;         ///< every number that the kernel may ever use is below
  std::vector<Cpu> online;  ///< by number
};

/// As sysfs tells; where it does not, of what the kernel may use all are online, and share nothing.
Cpus read_cpus(const std::string& directory = "/sys/devices/system/cpu");

}  // namespace tacho::kernel
