#include "web/request_head.h"

#include <catch2/catch.hpp>
#include <string>

namespace tacho::web {
namespace {

using State = HeadCollector::State;

State whole(const std::string& bytes) {
  return HeadCollector().add(bytes);
}

TEST_CASE("A request head is complete with its empty line, however it is cut") {
  const std::string head = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
  HeadCollector slow;
  for (std::size_t i = 0; i + 1 < head.size(); ++i) {
    CHECK(slow.add(head.substr(i, 1)) == State::incomplete);
  }
  CHECK(slow.add("\n") == State::complete);
  CHECK(slow.take() == head);
  HeadCollector fast;
  CHECK(fast.add("\r\n" + head + "more") == State::complete);
  CHECK(fast.take() == head);
}

TEST_CASE("What will never be a request is not waited for") {
  CHECK(whole("GET /\x01") == State::malformed);
  CHECK(whole(std::string(kMaxRequestHead, 'x')) == State::too_large);
  CHECK(whole(std::string(kMaxRequestHead - 1, 'x')) == State::incomplete);
  CHECK(whole(std::string(kMaxRequestHead * 2, '\n')) != State::incomplete);
  const auto with_headers = [](std::size_t count) {
    std::string head = "GET / HTTP/1.1\r\n";
    for (std::size_t i = 0; i < count; ++i) {
      head += "a:\r\n";
    }
    return head;
  };
  CHECK(whole(with_headers(kMaxHeaders)) == State::incomplete);
  CHECK(whole(with_headers(kMaxHeaders) + "\r\n") == State::complete);
  CHECK(whole(with_headers(kMaxHeaders + 1)) == State::too_large);
}

TEST_CASE("A request keeps what it was sent") {
  const auto parsed = parse_request("HEAD /a%20b?c=d&e HTTP/1.1\r\nHost: x\r\nX-Long:  a b \t\r\nEmpty:\r\n\r\n");
  REQUIRE(std::holds_alternative<Request>(parsed));
  const auto& request = std::get<Request>(parsed);
  CHECK(request.method == "HEAD");
  CHECK(request.path == "/a%20b");
  CHECK(request.query == "c=d&e");
  CHECK(request.header("x-long") == "a b");
  CHECK(request.header("empty") == "");
  CHECK_FALSE(request.header("none"));
}

TEST_CASE("The host of a whole URL counts, not that of the header") {
  for (const char* head : {"GET http://evil.example:80/x HTTP/1.1\r\nHost: localhost\r\n\r\n",
                           "GET http://evil.example:80/x HTTP/1.0\r\n\r\n"}) {
    const auto parsed = parse_request(head);
    REQUIRE(std::holds_alternative<Request>(parsed));
    const auto& request = std::get<Request>(parsed);
    CHECK(request.path == "/x");
    CHECK(request.header("Host") == "evil.example:80");
    CHECK(request.headers.size() == 1);
  }
  std::string full = "GET http://evil.example/ HTTP/1.0\r\n";
  for (std::size_t i = 0; i < kMaxHeaders; ++i) {
    full += "a:\r\n";
  }
  const auto parsed = parse_request(full + "\r\n");
  CHECK((std::holds_alternative<int>(parsed) && std::get<int>(parsed) == 431));
}

TEST_CASE("A carriage return within a line is refused") {
  for (const char* head : {"GET / HTTP/1.1\rHost: a\r\n\r\n", "GET / HTTP/1.1\r\nHost: a\rA: b\r\n\r\n",
                           "GET /\r HTTP/1.1\r\nHost: a\r\n\r\n", "GET / HTTP/1.1\r\r\nHost: a\r\n\r\n"}) {
    const auto parsed = parse_request(head);
    REQUIRE(std::holds_alternative<int>(parsed));
    CHECK(std::get<int>(parsed) == 400);
  }
}

TEST_CASE("Any cut of any head is refused or understood, and never more than that") {
  const std::string head =
      "POST http://h/x?y HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nA: b\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (std::size_t from = 0; from < head.size(); ++from) {
    for (std::size_t size = 0; size <= head.size() - from; ++size) {
      const auto parsed = parse_request(head.substr(from, size));
      if (const auto* const request = std::get_if<Request>(&parsed)) {
        CHECK((request->path.starts_with('/') || request->path == "*"));
      }
    }
  }
}

}  // namespace
}  // namespace tacho::web
