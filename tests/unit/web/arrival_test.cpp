#include <catch2/catch.hpp>
#include <string>

#include "web/request_head.h"

namespace tacho::web {
namespace {

Arrival plain(const std::string& bytes, bool no_more_data = false) {
  return judge_arrival(bytes, false, no_more_data);
}
Arrival tls(const std::string& bytes, bool no_more_data = false) {
  return judge_arrival(bytes, true, no_more_data);
}

TEST_CASE("A request is complete with its empty line") {
  const std::string request = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
  for (std::size_t size = 0; size < request.size(); ++size) {
    CHECK(plain(request.substr(0, size)) == Arrival::incomplete);
  }
  CHECK(plain(request) == Arrival::complete);
  CHECK(plain(request + "more") == Arrival::complete);
}

TEST_CASE("What will never be a request is not waited for") {
  CHECK(plain(std::string("GET /\x01")) == Arrival::complete);
  CHECK(plain(std::string(kMaxRequestHead, 'x')) == Arrival::complete);
  CHECK(plain(std::string(kMaxRequestHead - 1, 'x')) == Arrival::incomplete);
  CHECK(plain("GET /", true) == Arrival::complete);
}

TEST_CASE("A TLS client's first record is complete with its last byte") {
  const std::string hello = std::string("\x16\x03\x01\x01\x02", 5) + std::string(258, 'x');
  for (std::size_t size = 1; size < hello.size(); ++size) {
    CHECK(tls(hello.substr(0, size)) == Arrival::incomplete);
  }
  CHECK(tls(hello) == Arrival::complete);
  CHECK(tls(hello.substr(0, 9), true) == Arrival::complete);
}

TEST_CASE("Plain HTTP on a TLS port is told from its first byte") {
  CHECK(tls("G") == Arrival::plain_on_tls);
  CHECK(tls("GET / HTTP/1.1\r\n\r\n") == Arrival::plain_on_tls);
}

}  // namespace
}  // namespace tacho::web
