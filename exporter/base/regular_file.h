#pragma once

#include <cstddef>
#include <string>

#include "base/result.h"

namespace tacho {

/// The text of a file, cut after one byte more than `limit`. Anything but a regular file is an error: a pipe or a
/// device may keep its reader waiting, or never end.
Result<std::string> read_regular_file(const std::string& path, std::size_t limit);

}  // namespace tacho
