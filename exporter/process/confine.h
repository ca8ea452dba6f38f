#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tacho::process {

/// The user that owns nothing; other programs may run as it, too.
inline constexpr unsigned kNobody = 65534;
/// User ids from here on are unassigned: systemd's containers end before, its foreign images begin behind (systemd.io,
/// UIDS-GIDS). The collector's process number is added.
inline constexpr unsigned kFirstOwnUser = 1'900'000'000;

/// The beginning of the text that reports that the serving processes run as the user that started tacho. That alone is
/// no lack, if everything else is given up.
inline constexpr std::string_view kOwnUser = "a user of its own";

/// Gives up files, users, capabilities and most system calls, for good and for all processes that this one forks. It
/// must have only one thread. A step that is not permitted is left out: each text names what stays, and why.
std::vector<std::string> confine_starter();

/// The work that the collector continues to do.
struct CollectorNeeds {
  bool tells_service_manager = false;
  bool reads_executables = false;  ///< of other users' processes, by path
};
/// To be called once all programs are loaded and attached: gives up everything that is not needed for counting, finding
/// targets and reading files again. This applies to the calling thread, which starts the others only later. Otherwise
/// as confine_starter().
std::vector<std::string> confine_collector(const CollectorNeeds& needs);

}  // namespace tacho::process
