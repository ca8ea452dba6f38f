#include <charconv>
#include <system_error>

#include "kernel/cpus.h"

namespace tacho::kernel {
namespace {

bool take_number(std::string_view& text, unsigned& number) {
  const auto [end, error] = std::from_chars(text.begin(), text.end(), number);
  text.remove_prefix(error == std::errc{} ? static_cast<std::size_t>(end - text.begin()) : 0);
  return error == std::errc{};
}

}  // namespace

std::optional<std::vector<std::pair<unsigned, unsigned>>> parse_cpu_ranges(std::string_view text) {
  std::vector<std::pair<unsigned, unsigned>> all;
  while (true) {
    auto& [first, last] = all.emplace_back();
    if (!take_number(text, first)) {
      return {};
    }
    last = first;
    if (text.starts_with('-')) {
      text.remove_prefix(1);
      if (!take_number(text, last)) {
        return {};
      }
    }
    if (last < first) {
      return {};
    }
    if (!text.starts_with(',')) {
      return text.empty() || text == "\n" ? std::optional(std::move(all)) : std::nullopt;
    }
    text.remove_prefix(1);
  }
}

}  // namespace tacho::kernel
