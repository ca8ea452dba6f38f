#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/result.h"

namespace tacho::kernel {

/// The bytes of an embedded object as libbpf takes them: what is in xz's format (a single stream, with the dictionary
/// of bpf/embed) is decompressed, anything else copied. An error: what is embedded is not whole (EINVAL).
///
/// About 15 ms for the largest object, and 20 ms where it is the basic one; the decoder gives its 1 MiB back.
Result<std::vector<std::byte>> unpack(std::span<const std::byte> embedded);

}  // namespace tacho::kernel
