#include "config/glob.h"

#include <array>
#include <catch2/catch.hpp>
#include <random>
#include <string>
#include <string_view>

using tacho::config::Glob;

namespace {

bool matches(std::string_view pattern, std::string_view text) {
  const auto glob = Glob::compile(pattern);
  if (!glob) {
    FAIL(pattern << ": " << glob.error().message);
  }
  return glob->matches(text);
}

/// What `*`, `**`, `**/`, `?` and letters mean, by trying everything.
bool reference(std::string_view pattern, std::string_view text, bool component_start = true) {
  if (pattern.empty()) {
    return text.empty();
  }
  const auto each_rest = [&](std::string_view rest, bool across) {
    for (std::size_t i = 0; i <= text.size(); ++i) {
      if (reference(rest, text.substr(i), false)) {
        return true;
      }
      if (i < text.size() && text[i] == '/' && !across) {
        return false;
      }
    }
    return false;
  };
  if (pattern.starts_with("**")) {
    const std::string_view rest = pattern.substr(std::min(pattern.find_first_not_of('*'), pattern.size()));
    const bool skip = component_start && rest.starts_with('/') && reference(rest.substr(1), text, true);
    return skip || each_rest(rest, true);
  }
  if (pattern[0] == '*') {
    return each_rest(pattern.substr(1), false);
  }
  const bool one = !text.empty() && (pattern[0] == '?' ? text[0] != '/' : text[0] == pattern[0]);
  return one && reference(pattern.substr(1), text.substr(1), pattern[0] == '/');
}

}  // namespace

TEST_CASE("letters match themselves, as a whole") {
  CHECK(matches("/system.slice/nginx.service", "/system.slice/nginx.service"));
  CHECK_FALSE(matches("/system.slice/nginx.service", "/system.slice/nginx.service/x"));
  CHECK_FALSE(matches("/system.slice/nginx.service", "/system.slice/nginx"));
  CHECK_FALSE(matches("nginx", "Nginx"));
  CHECK_FALSE(matches("a.c", "abc"));
}

TEST_CASE("a star does not cross a slash") {
  CHECK(matches("/a/*", "/a/b"));
  CHECK(matches("/a/*", "/a/"));
  CHECK(matches("/a/b*d", "/a/bd"));
  CHECK(matches("/*/b", "/a/b"));
  CHECK(matches("*", ""));
  CHECK(matches("api-*", "api-v1-5d8f"));
  CHECK_FALSE(matches("/a/*", "/a/b/c"));
  CHECK_FALSE(matches("/a*c", "/a/c"));
  CHECK_FALSE(matches("*", "/"));
}

TEST_CASE("two stars cross slashes") {
  CHECK(matches("/kubepods.slice/**", "/kubepods.slice/a/b/c.scope"));
  CHECK(matches("/**.scope", "/a/b/c.scope"));
  CHECK(matches("**", "/a/b"));
  CHECK(matches("**", ""));
  CHECK(matches("/a***c", "/a/b/c"));
  CHECK_FALSE(matches("/a/**", "/a"));
  CHECK_FALSE(matches("/a/**", "/ab/c"));
}

TEST_CASE("a component of two stars may stand for none") {
  CHECK(matches("/a/**/b", "/a/b"));
  CHECK(matches("/a/**/b", "/a/x/b"));
  CHECK(matches("/a/**/b", "/a/x/y/b"));
  CHECK(matches("**/nginx", "/usr/sbin/nginx"));
  CHECK(matches("**/nginx", "nginx"));
  CHECK(matches("/**/**/b", "/b"));
  CHECK_FALSE(matches("/a/**/b", "/a/xb"));
  CHECK_FALSE(matches("/a/x**/b", "/a/b"));
  CHECK_FALSE(matches("**/nginx", "/usr/sbin/xnginx"));
}

TEST_CASE("a question mark is one byte other than a slash") {
  CHECK(matches("a?c", "abc"));
  CHECK_FALSE(matches("a?c", "ac"));
  CHECK_FALSE(matches("a?c", "a/c"));
}

TEST_CASE("sets") {
  CHECK(matches("[abc]", "b"));
  CHECK(matches("v[0-9]", "v7"));
  CHECK(matches("[a-cx-z]", "y"));
  CHECK(matches("[!a-c]", "d"));
  CHECK(matches("[]a]", "]"));
  CHECK(matches("[!]a]", "b"));
  CHECK(matches("[a-]", "-"));
  CHECK(matches("[-a]", "-"));
  CHECK(matches("[\\]\\\\]", "\\"));
  CHECK(matches("[a\\-c]", "-"));
  CHECK(matches("[\\^a]", "^"));
  CHECK_FALSE(matches("[a\\-c]", "b"));
  CHECK_FALSE(matches("[!]a]", "]"));
  CHECK_FALSE(matches("[a-c]", "d"));
  CHECK_FALSE(matches("[!a]", "/"));
  CHECK_FALSE(matches("[!a]", ""));
}

TEST_CASE("a backslash takes the next character as it is") {
  CHECK(matches("a\\*c", "a*c"));
  CHECK(matches("\\[x]", "[x]"));
  CHECK(matches(R"(/dev-disk-by\\x2duuid)", R"(/dev-disk-by\x2duuid)"));
  CHECK_FALSE(matches("a\\*c", "abc"));
  CHECK_FALSE(matches("a\\?c", "abc"));
}

TEST_CASE("bad patterns are refused") {
  const std::string pattern =
      GENERATE("", "a\\", "[", "[a", "[!", "[!a", "[]", "[]a", "[z-a]", "[a-", "[^a]", "[/]", "[+-9]", "[a\\", "[a-\\");
  CAPTURE(pattern);
  const auto glob = Glob::compile(pattern);
  REQUIRE_FALSE(glob);
  CHECK_FALSE(glob.error().message.empty());
  CHECK_FALSE(Glob::compile(std::string(Glob::kMaxLength + 1, 'a')));
  CHECK(Glob::compile(std::string(Glob::kMaxLength, 'a')));
}

TEST_CASE("the pattern is kept") {
  CHECK(Glob::compile("/a/**/[b]").value().pattern() == "/a/**/[b]");
}

TEST_CASE("globs agree with a matcher that tries everything") {
  static constexpr std::array<std::string_view, 8> kParts{"a", "b", "/", "*", "**", "?", "/**/", "**/"};
  static constexpr std::string_view kLetters = "ab/";
  std::mt19937 random(20261120);  // NOLINT(cert-msc51-cpp): the same cases in every run
  int matched = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::string pattern;
    for (std::size_t parts = 1 + random() % 5; parts > 0; --parts) {
      pattern += kParts[random() % kParts.size()];
    }
    std::string text;
    for (std::size_t letters = random() % 7; letters > 0; --letters) {
      text += kLetters[random() % kLetters.size()];
    }
    const bool expected = reference(pattern, text);
    matched += expected ? 1 : 0;
    if (matches(pattern, text) != expected) {
      FAIL(pattern << " on " << text << " should be " << expected);
    }
  }
  CHECK(matched > 1000);
}

TEST_CASE("hostile patterns take no longer than their length times the text's") {
  // A matcher that goes back would need more steps here than the universe has atoms; this one needs about a million.
  std::string stars;
  std::string components;
  for (int i = 0; i < 128; ++i) {
    stars += "*a";
    components += "**/";
  }
  const std::string text(4096, 'a');
  CHECK_FALSE(matches(stars + "b", text));
  CHECK(matches(stars, text));
  CHECK_FALSE(matches(components + "b", std::string(4096, '/')));
  CHECK_FALSE(matches(std::string(Glob::kMaxLength - 1, '?') + 'b', text));
}
