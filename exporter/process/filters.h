#pragma once

#include <cstdint>

#include "base/result.h"

namespace tacho::process {

/// The system calls that a process of this program may make; all others fail with EPERM.
enum class Filter : std::uint8_t {
  collector,          ///< files, BPF maps and iterators; no program is loaded or started, no socket made
  telling_collector,  ///< the same, and a datagram socket for the service manager
  starter,            ///< forks, and confines what it forks
  web,                ///< serves on the sockets that it was given; no file, no socket, no process
};

/// Cannot be removed; applies to all threads of this process and its children. Needs no_new_privs.
Result<void> install(Filter filter);

/// No more of them than there are, on top of what is installed: they would be as many as the machine has room for.
Result<void> forbid_threads();

}  // namespace tacho::process
