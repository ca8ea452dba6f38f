#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace tacho::process {

using CapabilitySet = std::uint64_t;  ///< a bit for each, by the kernel's numbers

constexpr CapabilitySet capability_bit(unsigned number) {
  return CapabilitySet{1} << number;
}

/// "bpf", "net_admin"; the number of one that is newer than this program.
std::string capability_name(unsigned number);
std::vector<std::string> capability_names(CapabilitySet set);

/// Gives up all other capabilities for good, in every set that the kernel lets a process change, and those that
/// execve(2) could restore (no_new_privs). This applies to the calling thread and those that it starts from here on.
Result<void> keep_capabilities(CapabilitySet kept);

/// The rights of a process of this program, as the kernel reports them.
struct Rights {
  std::string process;  ///< "collector", "web"
  int pid = 0;
  unsigned uid = 0;
  CapabilitySet capabilities = 0;  ///< permitted ones, of any thread
  std::uint64_t memory_bytes = 0;  ///< resident, without files
  bool no_new_privileges = false;
  bool filtered = false;           ///< by seccomp
  std::vector<std::string> lacks;  ///< rights that it should have given up and could not, with the reason
};

/// The rights in /proc/PID/status and of its threads; an error if the process is gone.
Result<Rights> rights_of(std::string process, int pid);

/// The same for each scrape. Reading some twenty threads would take a third of a scrape's time, so the rights are read
/// again only after ten seconds, or for another process. Thread-safe.
class RightsReader {
 public:
  using Clock = std::chrono::steady_clock;

  explicit RightsReader(std::string process) : process_(std::move(process)) {}
  Result<Rights> read(int pid, Clock::time_point now = Clock::now());

 private:
  const std::string process_;
  std::mutex mutex_;
  std::optional<Rights> known_;
  Clock::time_point looked_;
};

}  // namespace tacho::process
