#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "config/node.h"
#include "loading.h"

namespace config = tacho::config;

namespace {

/// The only error of the text.
std::string error_of(std::string_view yaml) {
  const auto errors = errors_of(yaml);
  REQUIRE(errors.size() == 1);
  return errors[0];
}

std::string repeated(int count, const std::string& text) {
  std::string out;
  for (int i = 0; i < count; ++i) {
    out += text;
  }
  return out;
}

}  // namespace

TEST_CASE("broken YAML is an error in its place") {
  CHECK(error_of("window: a: b\n").starts_with("1:10 not valid YAML: illegal map value"));
  CHECK(error_of("targets: [1, 2\n").starts_with("1:10 not valid YAML: end of sequence flow not found"));
  CHECK(error_of("window: 10s\nlimits: {max_peers: 1,\n").starts_with("2:9 not valid YAML: end of map flow not found"));
  CHECK(error_of("targets:\n  - name: a\n   self: pod\n").starts_with("3:4 not valid YAML: end of sequence not found"));
  CHECK(error_of("window: 10s\n]\n").starts_with("2:1 not valid YAML: illegal flow end"));
  CHECK(error_of("window: @x\n").starts_with("1:9 not valid YAML: unknown token"));
  CHECK(error_of("window: \"\\ud800\"\n").starts_with("1:16 not valid YAML: invalid unicode"));
  CHECK(error_of("window: - 10s\n").starts_with("1:9 not valid YAML: illegal block entry"));
}

TEST_CASE("a glob that YAML takes for an alias is explained") {
  const auto errors = config::load_text("targets:\n  - name: *api\n", "x").errors;
  REQUIRE(errors.size() == 1);
  CHECK(errors[0].where.line == 2);
  CHECK(errors[0].where.column == 11);
  CHECK(errors[0].hint == "quote a glob that starts with *");
}

TEST_CASE("a quote that is never closed is an error, line break or not") {
  for (const std::string& end : {std::string(), std::string("\n"), std::string("\n\n  \n"), std::string("\r\n")}) {
    CHECK(error_of("window: \"10s" + end).find("illegal EOF in scalar") != std::string::npos);
    CHECK(error_of("window: '10s" + end).find("illegal EOF in scalar") != std::string::npos);
    CHECK(error_of("run_statistics: true\nwindow: '10s\nidle_limit: 1s" + end).find("illegal EOF") !=
          std::string::npos);
  }
  CHECK_FALSE(errors_of("window: '").empty());
  CHECK_FALSE(errors_of("window: \"").empty());
}

TEST_CASE("only one document is read") {
  CHECK(error_of("window: 10s\n---\nwindow: 10s\n") == "2:1 a second document or text after the end of the first");
  CHECK(error_of("---\n---\n") == "2:1 a second document or text after the end of the first");
  CHECK(error_of("{window: 10s} x\n") == "1:15 a second document or text after the end of the first");
  CHECK(error_of("- a\nwindow: 10s\n") == "2:1 a second document or text after the end of the first");
}

TEST_CASE("tags and directives are refused") {
  CHECK(error_of("window: !!str 10s\n") == "1:9 YAML tags are not supported");
  CHECK(error_of("targets: !x []\n") == "1:10 YAML tags are not supported");
  CHECK(error_of("probes: !x {}\n") == "1:9 YAML tags are not supported");
  CHECK(error_of("%YAML 1.2\n---\nwindow: 10s\n") == "1:1 YAML directives are not supported");
  CHECK(error_of("%window: 10s") == "1:1 YAML directives are not supported");
}

TEST_CASE("tabs in the indentation are named") {
  CHECK(error_of("probes:\n\tsocket: {}\n") == "2:1 tab in the indentation");
  CHECK(error_of("probes:\n  \tsocket: {}\n") == "2:3 tab in the indentation");
  CHECK(errors_of("window: 10s\t# comment\n").empty());
}

TEST_CASE("bytes that are no text are named, one a line") {
  CHECK(errors_of("window: 10s # \xff\xff\nwindow: \xc0\x80\n") ==
        std::vector<std::string>{"1:15 not UTF-8: byte \\xff", "2:9 not UTF-8: byte \\xc0"});
  CHECK(error_of(std::string_view("window: 10s\0", 12)) == "1:12 control character \\x00");
  CHECK(error_of("window: \x04\n") == "1:9 control character \\x04");  // the library takes it for the end of the file
  CHECK(error_of("window: 10s\ridle_limit: 1s\n") == "1:12 control character \\r");
  CHECK(error_of("window: 10s\x7f") == "1:12 control character \\x7f");
  CHECK(error_of("\xff\xfew\0i\0").starts_with("1:1 not UTF-8"));  // UTF-16
}

TEST_CASE("columns count characters") {
  CHECK(error_of("{targets: [{name: é🚦, self: pod}], x: 1}") == "1:36 unknown key 'x'");
  CHECK(error_of("\xef\xbb\xbfx: 1") == "1:1 unknown key 'x'");
}

TEST_CASE("nesting is bounded in every style") {
  CHECK(error_of(repeated(33, "[") + repeated(33, "]")) == "1:33 nested deeper than 32 levels");
  for (const std::string& hostile :
       {repeated(100'000, "["), repeated(100'000, "{"), repeated(100'000, "- "), repeated(100'000, "? "),
        repeated(100'000, "[{a: "), "window: " + repeated(100'000, "[")}) {
    CHECK_FALSE(errors_of(hostile).empty());
  }
  std::string stairs;
  for (std::size_t depth = 0; depth < 1000; ++depth) {
    stairs += std::string(depth, ' ') + "a:\n";
  }
  CHECK(error_of(stairs) == "33:33 nested deeper than 32 levels");
}

TEST_CASE("aliases neither loop nor multiply") {
  CHECK(error_of("targets: &a [*a]\n") == "1:14 an alias inside the value that it names");
  CHECK(error_of("window: &a {x: *a}\n") == "1:16 an alias inside the value that it names");
  std::string laughs = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 10; ++i) {
    const std::string before = "*a" + std::to_string(i - 1);
    laughs += 'a' + std::to_string(i) + ": &a" + std::to_string(i) + " [" + repeated(9, before + ", ") + before + "]\n";
  }
  CHECK(error_of(laughs).find("too many values") != std::string::npos);
  CHECK(error_of("a: &a " + std::string(500'000, 'x') + "\nb: [" + repeated(10'000, "*a, ") + "]\n")
            .find("too many values") != std::string::npos);
}

TEST_CASE("files and scalars are bounded") {
  CHECK(error_of(std::string(std::size_t{1} << 21, '#')) == "1:1 the file is larger than 1048576 bytes");
  CHECK(error_of("targets: [{name: " + std::string(129, 'x') + ", self: pod}]") ==
        "1:18 targets[0].name: is longer than 128 bytes");
  CHECK(error_of("targets: [{name: a, cgroup: /" + std::string(500'000, 'x') + "}]") ==
        "1:29 targets[0].cgroup: is longer than 1024 bytes");
  CHECK(error_of("window: " + std::string(500'000, '9')).starts_with("1:9 window: '99999"));
  CHECK(error_of("window: " + std::string(500'000, '9')).size() < 200);
  CHECK(error_of(std::string(500, 'k') + ": 1").size() < 200);
}

TEST_CASE("an empty value is placed at its key") {
  CHECK(errors_of("limits:\n  max_peers:\n\n\nwindow:\n") ==
        std::vector<std::string>{"2:3 limits.max_peers: has no value: expected a number from 1 to 1024",
                                 "5:1 window: has no value: expected a duration from 2s to 1h"});
}

TEST_CASE("plain scalars are told apart as YAML 1.2 does") {
  using config::PlainKind;
  for (const char* text : {"0", "-1", "+12", "010", "0x1F", "0o17"}) {
    CHECK(config::plain_kind(text) == PlainKind::integer);
  }
  for (const char* text : {"1.5", "-.5", "1e3", "1.", "+1.5E-3", ".inf", "-.INF", ".nan"}) {
    CHECK(config::plain_kind(text) == PlainKind::real);
  }
  for (const char* text : {"true", "False", "TRUE"}) {
    CHECK(config::plain_kind(text) == PlainKind::boolean);
  }
  for (const char* text :
       {"", "yes", "on", "10s", "1.2.3", "0x", "0xg", "0o8", "e3", "1e", ".", "-", "12:30", "1_000", "tRUE"}) {
    CHECK(config::plain_kind(text) == PlainKind::text);
  }
}
