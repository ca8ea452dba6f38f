#include "top/url.h"

#include <catch2/catch.hpp>

using tacho::top::parse_url;
using tacho::top::Url;

namespace {

Url parsed(std::string_view text) {
  const auto url = parse_url(text);
  INFO((url ? "" : url.error().message));
  REQUIRE(url);
  return *url;
}

}  // namespace

TEST_CASE("a URL may leave out what goes without saying") {
  for (const char* text :
       {"http://127.0.0.1:9435", "http://127.0.0.1", "127.0.0.1:9435", "127.0.0.1", ":9435", "http://:9435/"}) {
    CAPTURE(text);
    const Url url = parsed(text);
    CHECK_FALSE(url.tls);
    CHECK(url.host == "127.0.0.1");
    CHECK(url.port == "9435");
    CHECK(url.prefix.empty());
    CHECK(url.text() == "http://127.0.0.1:9435");
  }
}

TEST_CASE("hosts, ports, prefixes and users are told apart") {
  const Url url = parsed("https://me:se:cr@et@[fe80::1]:8443/a/tacho/");
  CHECK(url.tls);
  CHECK(url.user == "me");
  CHECK(url.password == "se:cr@et");
  CHECK(url.host == "fe80::1");
  CHECK(url.port == "8443");
  CHECK(url.prefix == "/a/tacho");
  CHECK(url.text() == "https://[fe80::1]:8443/a/tacho");
  CHECK(parsed("https://node.example").port == "443");
  CHECK(parsed("http://[::1]").port == "9435");
  CHECK(parsed("unix:/run/tacho.sock").socket == "/run/tacho.sock");
  CHECK(parsed("unix:/run/tacho.sock").text() == "unix:/run/tacho.sock");
}

TEST_CASE("what is no URL is refused with how one looks") {
  for (const char* text : {"ftp://x", "http://x:0", "http://x:65536", "http://x:a", "http://[::1",
                           "unix:", "http://a b", "http://x/a\nb"}) {
    CAPTURE(text);
    const auto refused = parse_url(text);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().message.starts_with("--url: "));
    CHECK(refused.error().message.find("http://HOST:9435") != std::string::npos);
  }
}
