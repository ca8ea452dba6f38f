#include "web/host.h"

#include <catch2/catch.hpp>

#include "running_server.h"

namespace tacho::web {
namespace {

TEST_CASE("Names that this machine has for itself are told from others") {
  for (const char* host : {"", "localhost", "localhost:9435", "LOCALHOST", "a.localhost", "127.0.0.1", "127.0.0.1:9435",
                           "192.0.2.1", "[::1]", "[::1]:9435", "node-1", "node-1:9435", "tacho", "node-1.example.org",
                           "Node-1.Example.Org.:9435", "localhost."}) {
    CAPTURE(host);
    CHECK(may_be_here(host, "node-1.example.net"));
  }
  for (const char* host : {"evil.example", "evil.example:9435", "node-10.example.org", "localhost.evil.example",
                           "127.0.0.1.evil.example", "1.2.3.4.nip.io", "xlocalhost.example"}) {
    CAPTURE(host);
    CHECK_FALSE(may_be_here(host, "node-1.example.net"));
  }
  CHECK_FALSE(may_be_here("evil.example", ""));
}

TEST_CASE("A page whose name was made to lead here reads nothing") {
  const test::RunningServer server(test::one_page());
  const auto ask = [&server](const std::string& host) {
    return test::round_trip(server.address(), "GET /metrics HTTP/1.1\r\nHost: " + host + "\r\n\r\n");
  };
  CHECK(ask("localhost:9435").body == "up 1\n");
  const auto refused = ask("evil.example");
  CHECK(refused.status == 421);
  CHECK_THAT(refused.body, !Catch::Contains("up 1"));
  CHECK_THAT(refused.body, Catch::Contains("localhost"));
}

}  // namespace
}  // namespace tacho::web
