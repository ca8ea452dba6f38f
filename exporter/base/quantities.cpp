#include "base/quantities.h"

#include <spdlog/fmt/fmt.h>

#include <cmath>
#include <string_view>

namespace tacho {
namespace {

constexpr std::string_view kUnknown = "–";

std::string three_digits(double value) {
  return fmt::format("{:.{}f}", value, value >= 100 ? 0 : value >= 10 ? 1 : 2);
}

}  // namespace

std::string format_rate(double value) {
  return std::isnan(value) ? std::string(kUnknown) : three_digits(value);
}

std::string format_time(double seconds) {
  if (std::isnan(seconds)) {
    return std::string(kUnknown);
  }
  if (seconds < 1e-3) {
    return three_digits(seconds * 1e6) + " µs";
  }
  return seconds < 1 ? three_digits(seconds * 1e3) + " ms" : three_digits(seconds) + " s";
}

std::string format_share(double share) {
  return std::isnan(share) ? std::string(kUnknown) : fmt::format("{:.0f} %", share * 100);
}

}  // namespace tacho
