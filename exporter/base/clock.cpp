#include "base/clock.h"

#include <algorithm>
#include <charconv>

#include "base/regular_file.h"

namespace tacho {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::size_t kLargestFile = 4096;

/// Cuts the number at the beginning of a text off, with the blanks before it.
std::int64_t take_number(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

}  // namespace

std::int64_t parse_time_offset(std::string_view offsets) {
  constexpr std::string_view kClock = "monotonic ";
  const auto at = offsets.find(kClock);
  if (at == std::string_view::npos) {
    return 0;
  }
  offsets.remove_prefix(at + kClock.size());
  const std::int64_t seconds = take_number(offsets);
  return seconds * kSecond + take_number(offsets);
}

std::int64_t kernel_now_ns() {
  static const std::int64_t offset =
      parse_time_offset(read_regular_file("/proc/self/timens_offsets", kLargestFile).value_or(""));
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * kSecond + now.tv_nsec - offset;
}

}  // namespace tacho
