#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/result.h"

namespace tacho::kernel {

/// The bytes of an embedded object as libbpf takes them: what is in gzip's format (RFC 1952, a single member) is
/// decompressed, anything else copied. An error: what is embedded is not whole (EINVAL).
Result<std::vector<std::byte>> unpack(std::span<const std::byte> embedded);

}  // namespace tacho::kernel
