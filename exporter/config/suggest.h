#pragma once

#include <span>
#include <string_view>

namespace tacho::config {

/// The candidate that `word` was probably meant to be: the one with the fewest letters changed, added, dropped or
/// swapped (optimal string alignment distance). Empty if these are more than a third of the word, rounded up.
std::string_view nearest(std::string_view word, std::span<const std::string_view> candidates);

}  // namespace tacho::config
