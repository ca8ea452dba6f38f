#include "scrape/view.h"

#include <algorithm>
#include <ranges>

#include "base/ascii.h"

namespace tacho::scrape {
namespace {

bool contains(std::string_view text, std::string_view word) {
  return !std::ranges::search(text, word, {}, lower, lower).empty() || word.empty();
}

}  // namespace

std::string target_id(const targets::Labels& labels) {
  constexpr std::uint64_t kOffset = 0xcbf29ce484222325;
  constexpr std::uint64_t kPrime = 0x100000001b3;
  std::uint64_t hash = kOffset;
  const auto add = [&hash](std::string_view text) {
    for (const char c : text) {
      hash = (hash ^ static_cast<unsigned char>(c)) * kPrime;
    }
    hash *= kPrime;  // a zero byte: no text has one
  };
  for (const auto& [name, value] : labels) {
    add(name);
    add(value);
  }
  return boundary::id_text(hash);
}

bool matches(const targets::DesiredTarget& target, std::string_view filter) {
  return std::ranges::all_of(filter | std::views::split(' '), [&target](const auto part) {
    const std::string_view word(part.begin(), part.end());
    return contains(target.name, word) || contains(target.identity.path, word) ||
           std::ranges::any_of(target.labels, [word](const auto& label) { return contains(label.second, word); });
  });
}

}  // namespace tacho::scrape
