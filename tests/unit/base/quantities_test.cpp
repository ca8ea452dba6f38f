#include "base/quantities.h"

#include <catch2/catch.hpp>
#include <limits>

namespace tacho {

TEST_CASE("numbers have three digits that count, and their unit") {
  constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
  CHECK(format_rate(0) == "0.00");
  CHECK(format_rate(12.345) == "12.3");
  CHECK(format_rate(123456.7) == "123457");
  CHECK(format_rate(kUnknown) == "–");
  CHECK(format_time(20e-6) == "20.0 µs");
  CHECK(format_time(999.6e-6) == "1000 µs");
  CHECK(format_time(0.00125) == "1.25 ms");
  CHECK(format_time(12.5) == "12.5 s");
  CHECK(format_time(kUnknown) == "–");
  CHECK(format_share(0.256) == "26 %");
  CHECK(format_share(kUnknown) == "–");
}

}  // namespace tacho
