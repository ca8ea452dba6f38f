#include "web/host.h"

#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <string>

#include "running_server.h"

namespace tacho::web {
namespace {

TEST_CASE("Names that this machine has for itself are told from others") {
  for (const char* host : {"", "localhost", "localhost:9435", "LOCALHOST", "a.localhost", "127.0.0.1", "127.0.0.1:9435",
                           "192.0.2.1", "[::1]", "[::1]:9435", "node-1", "node-1:9435", "tacho", "node-1.example.net",
                           "Node-1.Example.Net.:9435", "localhost."}) {
    CAPTURE(host);
    CHECK(OwnNames("node-1.example.net", "").has(host));
  }
  for (const char* host : {"evil.example",
                           "evil.example:9435",
                           "node-10.example.net",
                           "localhost.evil.example",
                           "127.0.0.1.evil.example",
                           "1.2.3.4.nip.io",
                           "xlocalhost.example",
                           "node-1.evil.example",
                           "node-1.example.net.evil.example",
                           "node-1.example.org:9435",
                           "node-1..",
                           "..",
                           "evil.example:1:2",
                           "evil.example:localhost",
                           "evil.1x",
                           "localhost@evil.example",
                           "[::1].evil.example",
                           "[evil.example]",
                           "[::1",
                           "127.0.0.1@evil.example",
                           "0x7f.1.evil"}) {
    CAPTURE(host);
    CHECK_FALSE(OwnNames("node-1.example.net", "").has(host));
  }
  CHECK_FALSE(OwnNames("", "").has("evil.example"));
}

TEST_CASE("A machine that knows only its short name has the long one from its table of hosts") {
  const OwnNames names("node-1",
                       "127.0.0.1 localhost\n# 127.0.0.1 node-1 node-1.evil.example\n"
                       "127.0.1.1\tnode-1.example.net  Node-1 www.example.net # node-1.evil.example\n"
                       "192.0.2.1 other.example.net other\n\n127.0.0.1 advertisements.example");
  for (const char* host : {"node-1", "node-1.example.net", "NODE-1.EXAMPLE.NET.:9435", "www.example.net"}) {
    CAPTURE(host);
    CHECK(names.has(host));
  }
  for (const char* host :
       {"node-1.evil.example", "other.example.net", "advertisements.example", "node-1.example.org"}) {
    CAPTURE(host);
    CHECK_FALSE(names.has(host));
  }
}

TEST_CASE("A page whose name was made to lead here reads nothing") {
  const test::RunningServer server(test::one_page());
  const auto ask = [&server](const std::string& host) {
    return test::round_trip(server.address(), "GET /metrics HTTP/1.1\r\nHost: " + host + "\r\n\r\n");
  };
  CHECK(ask("localhost:9435").body == "up 1\n");
  std::array<char, 256> machine{};
  REQUIRE(::gethostname(machine.data(), machine.size() - 1) == 0);
  const std::string name(machine.data());
  CHECK(ask(name).body == "up 1\n");
  CHECK(ask(name.substr(0, name.find('.')) + ".evil.example").status == 421);
  const auto refused = ask("evil.example");
  CHECK(refused.status == 421);
  CHECK_THAT(refused.body, !Catch::Contains("up 1"));
  CHECK_THAT(refused.body, Catch::Contains("localhost"));
}

}  // namespace
}  // namespace tacho::web
