#pragma once

#include <iosfwd>

#include "base/result.h"
#include "top/options.h"

namespace tacho::top {

/// Shows the targets of a tacho in the terminal until the user quits, or prints them once.
Result<void> run(const TopOptions& options, std::ostream& out);

/// Prints the slowest requests of the last minutes of the targets that the filter matches.
Result<void> show_slowest(const TopOptions& options, std::ostream& out);

/// Prints what the requests of the targets wait for that the filter matches.
Result<void> show_why(const TopOptions& options, std::ostream& out);

}  // namespace tacho::top
