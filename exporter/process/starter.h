#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "process/web_process.h"

namespace tacho::process {

/// A process that can do nothing but fork web processes: it was forked before there was anything to hide from them, and
/// gave up what it could. The collector, which has threads, memory of the kernel and fewer rights by then, never forks.
struct Starter {
  UniqueFd control;
  int pid = 0;
};

/// Forks one, of a program that has one thread. What it does not need of `side` is closed in it: `others` of the
/// caller.
Result<Starter> fork_starter(WebSide& side, const std::vector<int>& others);

}  // namespace tacho::process
