#include "metrics/number.h"

#include <charconv>
#include <cmath>
#include <cstring>
#include <string_view>

namespace tacho::metrics {
namespace {

constexpr std::uint64_t kWholeSecond = 1'000'000'000;

char* write_text(char* out, std::string_view text) {
  std::memcpy(out, text.data(), text.size());
  return out + text.size();
}

}  // namespace

char* write_count(char* out, std::uint64_t n) {
  return std::to_chars(out, out + kMaxNumber, n).ptr;
}

char* write_seconds(char* out, std::uint64_t nanoseconds) {
  char* point = write_count(out, nanoseconds / kWholeSecond);
  const std::uint64_t fraction = nanoseconds % kWholeSecond;
  if (fraction == 0) {
    return point;
  }
  // The digit in front pads the fraction with zeros to nine digits; the point then takes its place.
  char* end = write_count(point, kWholeSecond + fraction);
  *point = '.';
  while (end[-1] == '0') {
    --end;
  }
  return end;
}

char* write_real(char* out, double x) {
  if (std::isnan(x)) {
    return write_text(out, "NaN");
  }
  if (std::isinf(x)) {
    return write_text(out, x > 0 ? "+Inf" : "-Inf");
  }
  return std::to_chars(out, out + kMaxNumber, x, std::chars_format::general).ptr;
}

char* write_value(char* out, const Value& value) {
  switch (value.kind) {
    case Value::Kind::absent:  // whoever writes lines leaves it out
      return out;
    case Value::Kind::count:
      return write_count(out, static_cast<std::uint64_t>(value.integer));
    case Value::Kind::nanoseconds: {
      auto magnitude = static_cast<std::uint64_t>(value.integer);
      if (value.integer < 0) {
        *out++ = '-';
        magnitude = 0 - magnitude;
      }
      return write_seconds(out, magnitude);
    }
    case Value::Kind::real:
      break;
  }
  return write_real(out, value.real);
}

std::string canonical(double x) {
  std::string text(kMaxNumber, '\0');
  text.resize(static_cast<std::size_t>(write_real(text.data(), x) - text.data()));
  if (std::isfinite(x) && text.find_first_of(".e") == std::string::npos) {
    text += ".0";
  }
  return text;
}

}  // namespace tacho::metrics
