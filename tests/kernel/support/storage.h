#pragma once

#include <filesystem>

namespace tacho::kernel_test {

/// Whether what is written to a directory stays in memory: tmpfs, ramfs, or an overlay whose upper layer is one of
/// them. An overlay whose upper layer cannot be seen from here is taken to be on a disk.
bool is_in_memory(const std::filesystem::path& directory);

}  // namespace tacho::kernel_test
