#include "metrics/escape.h"

#include <catch2/catch.hpp>
#include <string>

namespace tacho::metrics {
namespace {

using namespace std::string_literals;

std::string label(std::string_view value) {
  std::string out = "x";
  append_label_value(out, value);
  return out.substr(1);
}

std::string help(std::string_view text, bool quotes) {
  std::string out;
  append_help(out, text, quotes);
  return out;
}

TEST_CASE("label values are escaped") {
  CHECK(label("").empty());
  CHECK(label("plain /path-1.2:x") == "plain /path-1.2:x");
  CHECK(label(R"(a\b)") == R"(a\\b)");
  CHECK(label("say \"hi\"") == R"(say \"hi\")");
  CHECK(label("two\nlines") == R"(two\nlines)");
  CHECK(label("\\n") == R"(\\n)");
  CHECK(label("\\\"\n") == R"(\\\"\n)");
  CHECK(label("tab\tand return\r") == "tab\tand return\r");
}

TEST_CASE("valid UTF-8 stays, the rest becomes U+FFFD") {
  CHECK(label("Grüße 🚀 日本") == "Grüße 🚀 日本");
  CHECK(label("\xff") == "\uFFFD");
  CHECK(label("a\xc3") == "a\uFFFD");
  CHECK(label("a\xc3(b") == "a\uFFFD(b");
  CHECK(label("\xc0\xaf") == "\uFFFD");          // overlong '/'
  CHECK(label("\xed\xa0\x80") == "\uFFFD");      // a surrogate
  CHECK(label("\xf4\x90\x80\x80") == "\uFFFD");  // above U+10FFFF
  CHECK(label("\xff\"\n") == "\uFFFD\\\"\\n");
  CHECK(label("nul\0here"s) == "nul\0here"s);  // NUL is a character as any other
}

TEST_CASE("help escapes quotes only where they may be escaped") {
  CHECK(help("a \"b\" \\ c\nd", false) == R"(a "b" \\ c\nd)");
  CHECK(help("a \"b\" \\ c\nd", true) == R"(a \"b\" \\ c\nd)");
  CHECK(help("\xff", true) == "\uFFFD");
}

}  // namespace
}  // namespace tacho::metrics
