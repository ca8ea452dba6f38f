#pragma once

#include <string_view>

namespace tacho {

/// The program's version, as `tacho --version` and `tacho_build_info` report it.
std::string_view version();

}  // namespace tacho
