#include "top/ask.h"

#include <catch2/catch.hpp>
#include <string>

using tacho::top::ascii_json;

TEST_CASE("JSON of another tacho is written in ASCII, with the same content") {
  const auto text = ascii_json(
      "{\"name\": \"caf\u00e9 \u009b2J \u202e\", \"rate\": 12.25,\n\"count\": 18446744073709551615}\n", "url");
  REQUIRE(text);
  CHECK(*text == R"({"count":18446744073709551615,"name":"caf\u00e9 \u009b2J \u202e","rate":12.25})"
                 "\n");
}

TEST_CASE("what is no JSON is not written at all") {
  for (const char* answer : {"", "\x1b]0;pwn\x07", "{\"a\": \"\x1b[2J\"}", "[1] \x1b[2J", "{\"a\": \"\xff\"}"}) {
    const auto text = ascii_json(answer, "http://node7:9435");
    REQUIRE_FALSE(text);
    CHECK(text.error().message == "http://node7:9435: the answer is no JSON");
  }
}
