#include "base/accept_list.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

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

TEST_CASE("a list of what is accepted has types, parameters and weights") {
  const auto entries = parse_accept_list(" Text/Plain ; Version=0.0.4;q=0.3,, gzip;;Q=0 ,*/*; a=\"x, \\\"y\"");
  REQUIRE(entries.size() == 3);
  CHECK(std::ranges::none_of(entries, &AcceptEntry::malformed));
  CHECK(entries[0].type == "text");
  CHECK(entries[0].subtype == "plain");
  CHECK(entries[0].parameters == std::vector<std::pair<std::string, std::string>>{{"version", "0.0.4"}});
  CHECK(entries[0].weight == 300);
  CHECK(entries[1].type == "gzip");
  CHECK(entries[1].subtype.empty());
  CHECK(entries[1].weight == 0);
  CHECK(entries[2].type == "*");
  CHECK(entries[2].parameters.at(0).second == "x, \"y");
  CHECK(entries[2].weight == 1000);
}

TEST_CASE("a malformed entry ends at its comma") {
  const std::string broken = GENERATE("gzip;q=2", "gzip;q", "text/", "a b", ";q=1", "a;b=\"x\\", "a;b=(\"x,y\")");
  const auto entries = parse_accept_list(broken + ", br");
  CAPTURE(broken);
  REQUIRE_FALSE(entries.empty());
  CHECK(entries[0].malformed);
  const bool is_endless = broken.back() == '\\';
  REQUIRE(entries.size() == (is_endless ? 1 : 2));
  if (!is_endless) {
    CHECK(entries[1].type == "br");
    CHECK_FALSE(entries[1].malformed);
  }
}

}  // namespace

TEST_CASE("of a list that is too long its beginning counts, of which no entry is cut") {
  std::string list = "br;q=0.1";
  while (list.size() < 2040) {
    list += ",x";
  }
  const std::size_t whole = parse_accept_list(list).size();
  CHECK(whole > 1000);
  CHECK(parse_accept_list(list + ",gzip;q=0").size() == whole);
  CHECK(parse_accept_list(list + std::string(16'000, ',')).size() == whole);
  CHECK(parse_accept_list(std::string(16'000, 'a')).empty());
}

}  // namespace tacho
