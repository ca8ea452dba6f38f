#pragma once

#include <string>
#include <string_view>

namespace tacho::kernel {

/// Why this kernel accepts no program of a section's kind, whatever it is attached to. A tiny program is tried once in
/// the life of the process, and iterators are started: otherwise every object with such programs would be loaded again
/// for each of them.
/// @param section such as "fexit/tcp_splice_read"
/// @return empty if it accepts them, and for kinds that are not tried
std::string refused_kind(std::string_view section);

}  // namespace tacho::kernel
