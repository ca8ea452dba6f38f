#pragma once

#include <functional>

#include "fuzz/life.h"

namespace tacho::fuzz {

/// The shortest part of a life that is found to fail still: larger parts are left out first, then smaller ones, at
/// last single steps until none can be spared.
Life shrink(Life life, const std::function<bool(const Life&)>& fails);

}  // namespace tacho::fuzz
