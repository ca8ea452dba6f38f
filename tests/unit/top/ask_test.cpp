#include "top/ask.h"

#include <catch2/catch.hpp>
#include <sstream>

using tacho::top::write_json;

TEST_CASE("JSON of another tacho is written in ASCII, with the same content") {
  std::ostringstream out;
  REQUIRE(write_json("{\"name\": \"caf\u00e9 \u009b2J \u202e\", \"rate\": 12.25,\n\"count\": 18446744073709551615}\n",
                     "url", out));
  CHECK(out.str() == R"({"count":18446744073709551615,"name":"caf\u00e9 \u009b2J \u202e","rate":12.25})"
                     "\n");
}

TEST_CASE("what is no JSON is not written at all") {
  for (const char* answer : {"", "\x1b]0;pwn\x07", "{\"a\": \"\x1b[2J\"}", "[1] \x1b[2J", "{\"a\": \"\xff\"}"}) {
    std::ostringstream out;
    const auto written = write_json(answer, "http://node7:9435", out);
    REQUIRE_FALSE(written);
    CHECK(written.error().message == "http://node7:9435: the answer is no JSON");
    CHECK(out.str().empty());
  }
}
