#include "page/query.h"

#include <catch2/catch.hpp>

using namespace tacho::page;
using tacho::boundary::SortKey;

TEST_CASE("parameters are decoded") {
  const auto parameters = parse_query("a=1&b=x%20y+z&c&=d&%61%62=%C3%A9&a=2&e=%zz%4");
  CHECK(parameters.at("a") == "2");
  CHECK(parameters.at("b") == "x y z");
  CHECK(parameters.at("c").empty());
  CHECK(parameters.at("ab") == "é");
  CHECK(parameters.at("e") == "%zz%4");
  CHECK(parse_query("").empty());
  CHECK(parse_query("&&").empty());
}

TEST_CASE("a table is asked for by column, order, filter and part") {
  const auto query = table_query("sort=p99&order=asc&filter=a%26b&offset=10&limit=3");
  REQUIRE(query);
  CHECK(query->sort == SortKey::p99);
  CHECK_FALSE(query->descending);
  CHECK(query->filter == "a&b");
  CHECK(query->offset == 10);
  CHECK(query->limit == 3);
  const auto plain = table_query("");
  REQUIRE(plain);
  CHECK(plain->sort == SortKey::rate);
  CHECK(plain->descending);
  CHECK(plain->limit == 50);
}

TEST_CASE("what a table cannot be asked for is refused by name") {
  for (const auto& [query, word] : {std::pair{"sort=size", "sort: "},
                                    {"order=up", "order: "},
                                    {"limit=-1", "limit: "},
                                    {"limit=1e9", "limit: "},
                                    {"limit=10001", "limit: "},
                                    {"offset=", "offset: "},
                                    {"limit=99999999999999999999", "limit: "}}) {
    CAPTURE(query);
    const auto refused = table_query(query);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().message.starts_with(word));
  }
}

TEST_CASE("ids stand between commas") {
  CHECK(split_ids("a,b,,c") == std::vector<std::string>{"a", "b", "c"});
  CHECK(split_ids("").empty());
}
