#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace tacho::kernel {

/// Makes tracefs readable at one of its usual places, mounting it where that is allowed; without it the classic
/// tracepoints are not to be had and plans without them are taken.
/// @return where it is, or why it is not there
Result<std::string> ensure_tracefs();

/// What this process and kernel lack for observing anything at all, one line each with the remedy; empty if nothing.
std::vector<std::string> missing_prerequisites(const std::string& btf_path);

/// CPU numbers are below this.
unsigned possible_cpus();

}  // namespace tacho::kernel
