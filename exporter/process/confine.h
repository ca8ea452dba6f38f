#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tacho::process {

/// The user that owns nothing; other programs may be it, too.
inline constexpr unsigned kNobody = 65534;
/// From here on nobody has users: systemd's containers end before, its foreign images begin behind (systemd.io,
/// UIDS-GIDS). The collector's process number is added.
inline constexpr unsigned kFirstOwnUser = 1'900'000'000;

/// How the text begins that says that the processes which serve stay the user that started tacho: less than that is no
/// lack, where all else is given up.
inline constexpr std::string_view kOwnUser = "a user of its own";

/// Gives up files, users, capabilities and what this process may ask of the kernel, for good and for all that
/// it forks. Only while it has one thread. What is not permitted here is left out: each text says what stays, and why.
std::vector<std::string> confine_starter();

/// What the collector goes on doing.
struct CollectorNeeds {
  bool tells_service_manager = false;
  bool reads_executables = false;  ///< of other users' processes, by path
};
/// Once all programs are loaded and attached: gives up what is not needed for counting, finding targets and reading
/// files again. Of the calling thread, which starts the others only later. As confine_starter() otherwise.
std::vector<std::string> confine_collector(const CollectorNeeds& needs);

}  // namespace tacho::process
