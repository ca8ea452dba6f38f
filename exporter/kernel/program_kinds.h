#pragma once

#include <string>
#include <string_view>

namespace tacho::kernel {

/// Why this kernel takes no program of a section's kind, whatever that is attached to. A tiny program tells, tried once
/// in the life of the process: else every object that has such programs would be loaded again for each of them.
/// @param section such as "fexit/tcp_splice_read"
/// @return empty if it takes them, and for kinds that are not tried
std::string refused_kind(std::string_view section);

}  // namespace tacho::kernel
