#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/result.h"
#include "base/unique_fd.h"

namespace tacho {

/// Whether a path's last component may be a symbolic link.
enum class Links : std::uint8_t { follow, refuse };

/// A regular file, opened for reading. Whatever else is at the path is an error (EISDIR, EINVAL) and stays unopened:
/// who opens a pipe waits for a writer or wakes one, and who opens a device makes it do something.
Result<UniqueFd> open_regular_file(const std::string& path, Links links = Links::follow);

/// The text of a regular file, cut after one byte more than `limit`.
Result<std::string> read_regular_file(const std::string& path, std::size_t limit, Links links = Links::follow);

}  // namespace tacho
