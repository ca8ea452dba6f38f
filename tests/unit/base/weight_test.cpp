#include "base/weight.h"

#include <catch2/catch.hpp>

namespace tacho {
namespace {

TEST_CASE("a weight of HTTP is 0 to 1 with three decimals at most") {
  const auto [text, expected] = GENERATE(table<const char*, std::optional<int>>({
      {"0", 0},
      {"1", 1000},
      {"0.", 0},
      {"1.", 1000},
      {"0.5", 500},
      {"0.05", 50},
      {"0.005", 5},
      {"0.801", 801},
      {"1.000", 1000},
      {"", std::nullopt},
      {"2", std::nullopt},
      {"1.001", std::nullopt},
      {"0.1234", std::nullopt},
      {"-1", std::nullopt},
      {".5", std::nullopt},
      {"00", std::nullopt},
      {"0,5", std::nullopt},
      {"0.5 ", std::nullopt},
      {"0.x", std::nullopt},
      {"+1", std::nullopt},
      {"1e0", std::nullopt},
  }));
  INFO(text);
  CHECK(parse_weight(text) == expected);
}

}  // namespace
}  // namespace tacho
