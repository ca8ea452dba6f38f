#include "config/network.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <string>

#include "loading.h"

using tacho::config::parse_network;

namespace {

std::string problem(const std::string& text) {
  const auto network = parse_network(text);
  return network ? "" : network.error().message;
}

}  // namespace

TEST_CASE("networks are addresses with the length of a prefix") {
  const auto four = parse_network("10.0.3.0/24");
  REQUIRE(four);
  CHECK(four->prefix_bits == 96 + 24);
  CHECK(four->address == std::array<std::uint8_t, 16>{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 3, 0});
  const auto six = parse_network("fd00:3::/64");
  REQUIRE(six);
  CHECK(six->prefix_bits == 64);
  CHECK(six->address == std::array<std::uint8_t, 16>{0xfd, 0, 0, 3});
  const auto host = parse_network("10.0.3.7");
  REQUIRE(host);
  CHECK(host->prefix_bits == 128);
  CHECK(*host == parse_network("::ffff:10.0.3.7").value());
  CHECK(parse_network("0.0.0.0/0").value() == parse_network("::ffff:0:0/96").value());
  REQUIRE(parse_network("::/0"));
  CHECK(parse_network("::/0")->prefix_bits == 0);
}

TEST_CASE("what is no network is told why, and how to write it") {
  for (const std::string text :
       {"", "/", "database", "10.0.0", "10.0.0.0.0/8", "10.0.0.256", "2001:db8::g/32", "[::1]"}) {
    CAPTURE(text);
    CHECK(problem(text).contains("is no network: expected an address"));
  }
  for (const std::string text :
       {"10.0.0.0/", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/8 ", "10.0.0.0/8/8", "10.0.0.0/+8"}) {
    CAPTURE(text);
    CHECK(problem(text).contains("from 0 to 32"));
  }
  CHECK(problem("::/129").contains("from 0 to 128"));
  CHECK(problem("10.0.3.7/24") == "has address bits beyond its prefix; write 10.0.3.0/24");
  CHECK(problem("fd00::1/8") == "has address bits beyond its prefix; write fd00::/8");
}

TEST_CASE("a network has one name") {
  const auto errors = errors_of(R"(
peers:
  - name: a
    networks: [10.0.0.0/8]
  - name: b
    networks: ["::ffff:10.0.0.0/104"]
)");
  REQUIRE(errors.size() == 1);
  CHECK(errors.front() == "6:16 duplicate network '::ffff:10.0.0.0/104'");
}
