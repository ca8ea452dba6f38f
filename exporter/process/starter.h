#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "process/web_process.h"

namespace tacho::process {

/// A process that can only fork web processes. It was forked before there was anything to hide from them, and gave up
/// all that it could. The collector never forks: by then it has threads, memory of the kernel and fewer rights.
struct Starter {
  UniqueFd control;
  int pid = 0;
};

/// Forks a starter; the program must have only one thread. The starter closes `others`, descriptors of the caller that
/// it does not need.
Result<Starter> fork_starter(WebSide& side, const std::vector<int>& others);

}  // namespace tacho::process
