#include "config/units.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <optional>
#include <span>

#include "config/diagnostic.h"

namespace tacho::config {
namespace {

struct Unit {
  std::string_view name;
  std::uint64_t factor;
};

constexpr std::array<Unit, 6> kTimes{{{"h", 3'600'000'000'000},
                                      {"m", 60'000'000'000},
                                      {"s", 1'000'000'000},
                                      {"ms", 1'000'000},
                                      {"us", 1'000},
                                      {"ns", 1}}};

constexpr std::string_view kTimeHint = "units are h, m, s, ms, us, ns, as in 10s or 1m30s";

struct Amount {
  std::uint64_t number = 0;
  std::string_view unit;
};

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/// Cuts one number with its unit off the front of `rest`; nothing where it does not start with a number that fits.
std::optional<Amount> cut_amount(std::string_view& rest) {
  Amount amount;
  const auto digits = static_cast<std::size_t>(std::ranges::find_if_not(rest, is_digit) - rest.begin());
  const auto [end, error] = std::from_chars(rest.begin(), rest.begin() + digits, amount.number);
  if (digits == 0 || error != std::errc()) {
    return std::nullopt;
  }
  rest.remove_prefix(digits);
  const auto letters = static_cast<std::size_t>(std::ranges::find_if(rest, is_digit) - rest.begin());
  amount.unit = rest.substr(0, letters);
  rest.remove_prefix(letters);
  return amount;
}

auto refuse(std::string_view text, std::string_view what) {
  return fail(quote(text) + ' ' + std::string(what) + "; " + std::string(kTimeHint));
}

/// Sum of the amounts in `text` in ns, whose units come in the order of kTimes; at most `limit`.
Result<std::uint64_t> parse(std::string_view text, std::uint64_t limit) {
  std::span<const Unit> units = kTimes;
  std::uint64_t total = 0;
  std::string_view rest = text;
  do {
    const auto amount = cut_amount(rest);
    if (!amount) {
      return refuse(text, "is not a whole number with a unit");
    }
    if (amount->unit.empty()) {
      return refuse(text, "has no unit");
    }
    const auto unit = std::ranges::find(units, amount->unit, &Unit::name);
    if (unit == units.end()) {
      return refuse(text, "has an unknown unit or one out of order");
    }
    if (amount->number > (limit - total) / unit->factor) {
      return refuse(text, "is too large");
    }
    total += amount->number * unit->factor;
    units = {unit + 1, units.end()};
  } while (!rest.empty());
  return total;
}

}  // namespace

Result<Duration> parse_duration(std::string_view text) {
  constexpr auto kLimit = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  const auto nanoseconds = parse(text, kLimit);
  if (!nanoseconds) {
    return std::unexpected(nanoseconds.error());
  }
  return Duration(static_cast<std::int64_t>(*nanoseconds));
}

std::string format_duration(Duration duration) {
  auto rest = static_cast<std::uint64_t>(duration.count());
  std::string out;
  for (const Unit& unit : kTimes) {
    if (rest >= unit.factor) {
      out += std::to_string(rest / unit.factor);
      out += unit.name;
      rest %= unit.factor;
    }
  }
  return out.empty() ? "0s" : out;
}

Result<Percent> parse_percent(std::string_view text) {
  constexpr std::string_view kHint = "; a percentage has at most two decimals and the sign, as in 1% or 0.25%";
  constexpr std::size_t kDecimals = 2;
  constexpr std::size_t kMostDigits = 3;
  constexpr unsigned kAll = 100 * 100;
  const auto refuse = [&](std::string_view what) {
    return fail(quote(text) + ' ' + std::string(what) + std::string(kHint));
  };
  if (!text.ends_with('%')) {
    return refuse("has no percent sign");
  }
  const std::string_view number = text.substr(0, text.size() - 1);
  const auto point = number.find('.');
  const std::string_view whole = number.substr(0, point);
  const std::string_view decimals = point == std::string_view::npos ? "" : number.substr(point + 1);
  if (whole.empty() || !std::ranges::all_of(whole, is_digit) || !std::ranges::all_of(decimals, is_digit) ||
      decimals.size() > kDecimals || (point != std::string_view::npos && decimals.empty())) {
    return refuse("is not a percentage");
  }
  if (whole.size() > kMostDigits) {
    return refuse("is too large");
  }
  unsigned value = 0;
  for (const char digit : std::string(whole) + std::string(decimals) + std::string(kDecimals - decimals.size(), '0')) {
    value = value * 10 + static_cast<unsigned>(digit - '0');
  }
  return value <= kAll ? Result<Percent>(Percent{value}) : refuse("is too large");
}

std::string format_percent(Percent percent) {
  std::string out = std::to_string(percent.hundredths / 100);
  if (const unsigned rest = percent.hundredths % 100; rest > 0) {
    out += '.' + std::to_string(rest / 10) + (rest % 10 > 0 ? std::to_string(rest % 10) : "");
  }
  return out + '%';
}

}  // namespace tacho::config
