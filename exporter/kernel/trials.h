#pragma once

#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include "base/result.h"

namespace tacho::kernel {

/// Whether an error is of the moment (memory, a signal, descriptors) and says nothing of what the kernel can do.
bool is_passing(int error);

/// What was found by trial of the kernel, which does not change in the life of the process. Safe to call from any
/// thread; trials are made one at a time.
class Trials {
 public:
  /// Why `what` is refused; empty if it is not. It is tried once. A passing error is no verdict: nothing is refused for
  /// it, and the next caller tries again.
  template <class Try>
  std::string refused(std::string_view what, Try attempt) {
    const std::lock_guard lock(mutex_);
    if (const auto found = verdicts_.find(what); found != verdicts_.end()) {
      return found->second;
    }
    const Result<void> done = attempt();
    if (!done && is_passing(done.error().code)) {
      return {};
    }
    return verdicts_.emplace(what, done ? "" : done.error().message).first->second;
  }

 private:
  std::mutex mutex_;
  std::map<std::string, std::string, std::less<>> verdicts_;
};

}  // namespace tacho::kernel
