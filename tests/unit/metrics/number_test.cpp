#include "metrics/number.h"

#include <array>
#include <bit>
#include <catch2/catch.hpp>
#include <charconv>
#include <cmath>
#include <limits>
#include <random>
#include <string>

namespace tacho::metrics {
namespace {

std::string text(const Value& value) {
  std::array<char, kMaxNumber> buffer{};
  return {buffer.data(), write_value(buffer.data(), value)};
}

/// Decimal seconds back to nanoseconds, by hand.
std::int64_t nanoseconds_of(std::string decimal) {
  const bool negative = decimal.starts_with('-');
  decimal.erase(0, negative ? 1 : 0);
  const std::size_t point = decimal.find('.');
  const std::string digits = decimal.substr(0, point);
  std::string fraction = point == std::string::npos ? "" : decimal.substr(point + 1);
  fraction.resize(9, '0');
  const auto magnitude = std::stoull(digits + fraction);
  return static_cast<std::int64_t>(negative ? 0 - magnitude : magnitude);
}

TEST_CASE("counts are integers up to 2^64 - 1") {
  CHECK(text(Value::count(0)) == "0");
  CHECK(text(Value::count(9'007'199'254'740'993)) == "9007199254740993");
  CHECK(text(Value::count(std::numeric_limits<std::uint64_t>::max())) == "18446744073709551615");
}

TEST_CASE("nanoseconds are exact decimal seconds") {
  CHECK(text(Value::nanoseconds(0)) == "0");
  CHECK(text(Value::nanoseconds(1)) == "0.000000001");
  CHECK(text(Value::nanoseconds(1000)) == "0.000001");
  CHECK(text(Value::nanoseconds(12'500'000'000)) == "12.5");
  CHECK(text(Value::nanoseconds(-250'000'000)) == "-0.25");
  CHECK(text(Value::nanoseconds(1'000'000'001)) == "1.000000001");
  CHECK(text(Value::nanoseconds(100'000'000'000)) == "100");
  CHECK(text(Value::nanoseconds(std::numeric_limits<std::int64_t>::max())) == "9223372036.854775807");
  CHECK(text(Value::nanoseconds(std::numeric_limits<std::int64_t>::min())) == "-9223372036.854775808");
}

TEST_CASE("seconds of random nanoseconds read back exactly and are as short as can be") {
  std::mt19937_64 random(1);
  std::size_t wrong = 0;
  for (int i = 0; i < 50'000; ++i) {
    const auto ns = static_cast<std::int64_t>(random()) >> (random() % 63);
    const std::string written = text(Value::nanoseconds(ns));
    const bool short_enough = written.find('.') == std::string::npos || written.back() != '0';
    wrong += nanoseconds_of(written) == ns && short_enough ? 0U : 1U;
  }
  CHECK(wrong == 0);
}

TEST_CASE("real numbers are laid out as Go does") {
  CHECK(text(Value::number(0)) == "0");
  CHECK(text(Value::number(-0.0)) == "-0");
  CHECK(text(Value::number(0.1)) == "0.1");
  CHECK(text(Value::number(1.0 / 3)) == "0.3333333333333333");
  CHECK(text(Value::number(100'000)) == "100000");
  CHECK(text(Value::number(1'000'000)) == "1e+06");
  CHECK(text(Value::number(0.0001)) == "0.0001");
  CHECK(text(Value::number(0.00001)) == "1e-05");
  CHECK(text(Value::number(std::numeric_limits<double>::infinity())) == "+Inf");
  CHECK(text(Value::number(-std::numeric_limits<double>::infinity())) == "-Inf");
  CHECK(text(Value::number(-std::nan(""))) == "NaN");
}

TEST_CASE("real numbers of any bits read back and fit") {
  std::mt19937_64 random(2);
  std::size_t wrong = 0;
  for (int i = 0; i < 50'000; ++i) {
    const auto x = std::bit_cast<double>(random());
    const std::string written = text(Value::number(x));
    double back = 0;
    std::from_chars(written.data(), written.data() + written.size(), back);
    wrong += !std::isfinite(x) || (back == x && written.size() < kMaxNumber) ? 0U : 1U;
  }
  CHECK(wrong == 0);
  CHECK(text(Value::number(-std::numeric_limits<double>::denorm_min())) == "-5e-324");
}

TEST_CASE("canonical numbers are floats") {
  CHECK(canonical(0) == "0.0");
  CHECK(canonical(1) == "1.0");
  CHECK(canonical(10) == "10.0");
  CHECK(canonical(0.001) == "0.001");
  CHECK(canonical(1e-5) == "1e-05");
  CHECK(canonical(1e5) == "100000.0");
  CHECK(canonical(1e6) == "1e+06");
  CHECK(canonical(1e10) == "1e+10");
  CHECK(canonical(std::numeric_limits<double>::infinity()) == "+Inf");
}

}  // namespace
}  // namespace tacho::metrics
