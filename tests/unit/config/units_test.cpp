#include "config/units.h"

#include <catch2/catch.hpp>
#include <chrono>
#include <string>

using namespace std::chrono_literals;
using tacho::config::Duration;
using tacho::config::format_duration;
using tacho::config::format_percent;
using tacho::config::parse_duration;
using tacho::config::parse_percent;
using tacho::config::Percent;

TEST_CASE("durations are read in every unit and as sums") {
  CHECK(parse_duration("10s").value() == 10s);
  CHECK(parse_duration("1m30s").value() == 90s);
  CHECK(parse_duration("500ms").value() == 500ms);
  CHECK(parse_duration("1h2m3s4ms5us6ns").value() == 1h + 2min + 3s + 4ms + 5us + 6ns);
  CHECK(parse_duration("0s").value() == 0s);
  CHECK(parse_duration("90m").value() == 90min);
  CHECK(parse_duration("9223372036854775807ns").value() == Duration::max());
}

TEST_CASE("what is no duration is refused and named") {
  const std::string text =
      GENERATE("", "10", "s", "-1s", "+1s", "1.5s", "10 s", " 10s", "10s ", "10S", "10sec", "1s1m", "1s1s", "10s5",
               "1d", "∞", "1e3s", "0x10s", "9223372036854775808ns", "99999999999999999999s", "2562048h");
  CAPTURE(text);
  const auto parsed = parse_duration(text);
  REQUIRE_FALSE(parsed);
  CHECK(parsed.error().message.starts_with("'" + text + "' "));
  CHECK(parsed.error().message.find("units are h, m, s, ms, us, ns") != std::string::npos);
}

TEST_CASE("messages tell a missing unit from an unknown one and from a number too large") {
  CHECK(parse_duration("10").error().message.find("has no unit") != std::string::npos);
  CHECK(parse_duration("10d").error().message.find("unknown unit") != std::string::npos);
  CHECK(parse_duration("2562048h").error().message.find("too large") != std::string::npos);
}

TEST_CASE("a formatted duration is read back as the same") {
  for (const Duration duration :
       std::initializer_list<Duration>{0s, 1ns, 999us, 10ms, 1s, 90s, 1h, 25h + 1ns, Duration::max()}) {
    CHECK(parse_duration(format_duration(duration)).value() == duration);
  }
  CHECK(format_duration(90s) == "1m30s");
  CHECK(format_duration(0s) == "0s");
  CHECK(format_duration(1500ms) == "1s500ms");
}

TEST_CASE("a percentage is read to two decimals, and formatted is read back as the same") {
  CHECK(parse_percent("1%").value() == Percent{100});
  CHECK(parse_percent("0.5%").value() == Percent{50});
  CHECK(parse_percent("0.05%").value() == Percent{5});
  CHECK(parse_percent("12.34%").value() == Percent{1234});
  CHECK(parse_percent("100%").value().share() == 1);
  CHECK(parse_percent("007%").value() == Percent{700});
  for (unsigned hundredths = 0; hundredths <= 10'000; ++hundredths) {
    const std::string text = format_percent(Percent{hundredths});
    CAPTURE(text);
    REQUIRE(parse_percent(text).value() == Percent{hundredths});
  }
  CHECK(format_percent(Percent{50}) == "0.5%");
  CHECK(format_percent(Percent{5}) == "0.05%");
  CHECK(format_percent(Percent{300}) == "3%");
}

TEST_CASE("what is no percentage is refused and named") {
  const std::string text =
      GENERATE("", "1", "%", "1 %", " 1%", "1%%", "1%1", "-1%", "+1%", ".5%", "1.%", "1,5%", "1.234%", "1e1%", "0x1%",
               "100.01%", "101%", "1000%", "99999999999999999999%", "1‰");
  CAPTURE(text);
  const auto parsed = parse_percent(text);
  REQUIRE_FALSE(parsed);
  CHECK(parsed.error().message.starts_with("'" + text + "' "));
  CHECK(parsed.error().message.ends_with("as in 1% or 0.25%"));
}
