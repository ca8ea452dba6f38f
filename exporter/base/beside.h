#pragma once

#include <future>
#include <system_error>
#include <utility>

namespace tacho {

/// Begins `work` in a thread of its own; where the process may have no more threads (RLIMIT_NPROC, memory), whoever
/// asks for the result does it instead.
template <class Work>
auto begin_beside(Work work) -> decltype(std::async(std::launch::async, work)) {
  try {
    return std::async(std::launch::async, work);
  } catch (const std::system_error&) {
    return std::async(std::launch::deferred, std::move(work));
  }
}

}  // namespace tacho
