#include "base/utf8.h"

#include <catch2/catch.hpp>
#include <string>

using tacho::printable;
using tacho::utf8_sequence;

TEST_CASE("utf8_sequence tells the length of a well-formed sequence") {
  CHECK(utf8_sequence("a") == 1);
  CHECK(utf8_sequence(std::string_view("\0", 1)) == 1);
  CHECK(utf8_sequence("é!") == 2);
  CHECK(utf8_sequence("€") == 3);
  CHECK(utf8_sequence("\xed\x9f\xbf") == 3);  // U+D7FF, the last before the surrogates
  CHECK(utf8_sequence("🚦") == 4);
  CHECK(utf8_sequence("\xf4\x8f\xbf\xbf") == 4);  // U+10FFFF
}

TEST_CASE("utf8_sequence refuses what RFC 3629 refuses") {
  CHECK(utf8_sequence("") == 0);
  CHECK(utf8_sequence("\x80") == 0);      // a continuation byte alone
  CHECK(utf8_sequence("\xc3") == 0);      // cut off
  CHECK(utf8_sequence("\xe2\x82") == 0);  // cut off
  CHECK(utf8_sequence("\xc3(") == 0);     // no continuation
  CHECK(utf8_sequence("\xe2\x82(") == 0);
  CHECK(utf8_sequence("\xc0\x80") == 0);  // overlong
  CHECK(utf8_sequence("\xe0\x9f\xbf") == 0);
  CHECK(utf8_sequence("\xf0\x8f\xbf\xbf") == 0);
  CHECK(utf8_sequence("\xed\xa0\x80") == 0);      // a surrogate
  CHECK(utf8_sequence("\xf4\x90\x80\x80") == 0);  // beyond U+10FFFF
  CHECK(utf8_sequence("\xf5\x80\x80\x80") == 0);
  CHECK(utf8_sequence("\xff") == 0);
}

TEST_CASE("printable leaves text alone and escapes the rest") {
  CHECK(printable("plain 'text' é € 🚦 \\") == "plain 'text' é € 🚦 \\");
  CHECK(printable("a\nb\tc\r") == "a\\nb\\tc\\r");
  CHECK(printable("\x1b[31m\x7f") == "\\x1b[31m\\x7f");
  CHECK(printable(std::string_view("\0", 1)) == "\\x00");
  CHECK(printable("\xff\xc3") == "\\xff\\xc3");
  CHECK(printable("\xc2\x9b") == "\\xc2\\x9b");  // U+009B starts a sequence on some terminals, as ESC [ does
  CHECK(printable("\xc2\xa0") == "\xc2\xa0");
}

TEST_CASE("printable shows what is not seen or turns the direction of the rest") {
  CHECK(tacho::printable("a\u202eb") == "a\\xe2\\x80\\xaeb");
  for (const char* hidden :
       {"\u200b", "\u200d", "\u200e", "\u2028", "\u2066", "\u2060", "\ufeff", "\u00ad", "\u061c"}) {
    CAPTURE(hidden);
    CHECK(tacho::printable(hidden).starts_with("\\x"));
  }
  for (const char* seen : {"ä", "\u200a", "\u2010", "\u2030", "\u2070", "€", "漢", "\U0001f600"}) {
    CHECK(tacho::printable(seen) == seen);
  }
}

TEST_CASE("well_formed keeps what is UTF-8 and writes the rest in digits") {
  CHECK(tacho::well_formed("plain ä\u202e\n") == "plain ä\u202e\n");
  CHECK(tacho::well_formed("a\xff") == "a\\xff");
  CHECK(tacho::well_formed("\xc3") == "\\xc3");
  CHECK(tacho::well_formed(std::string("\0", 1)) == std::string("\0", 1));
  CHECK(tacho::well_formed("").empty());
}
