#include "web/render.h"

#include <catch2/catch.hpp>

#include "client.h"
#include "web/encoding.h"

namespace tacho::web {
namespace {

using test::Reply;

Reply rendered(Response response, const RenderOptions& options = {}) {
  const Rendered out = render(std::move(response), options);
  std::string bytes = out.head;
  for (const Piece& piece : out.body ? *out.body : Pieces()) {
    bytes += piece.view();
  }
  return Reply::parse(bytes);
}

RenderOptions accepting(const std::optional<std::string>& encoding, bool head_only = false) {
  RenderOptions options;
  options.gzip = accepts_gzip(encoding);
  options.head_only = head_only;
  return options;
}

Response page(std::string body) {
  Response response;
  response.body = std::move(body);
  return response;
}

TEST_CASE("A response says what it is") {
  const Reply reply = rendered(page("ok\n"));
  CHECK(reply.head.starts_with("HTTP/1.1 200 OK\r\n"));
  CHECK(reply.header("Content-Type") == "text/plain; charset=utf-8");
  CHECK(reply.header("Content-Length") == "3");
  CHECK(reply.header("X-Content-Type-Options") == "nosniff");
  CHECK(reply.header("Cross-Origin-Resource-Policy") == "same-origin");
  CHECK(reply.header("Connection") == "close");
  CHECK(reply.body == "ok\n");
}

TEST_CASE("A content type is always sent") {
  Response response = page("x");
  response.content_type.clear();
  CHECK(rendered(response).header("Content-Type") == "application/octet-stream");
}

TEST_CASE("HEAD gets the headers of GET") {
  const std::string body(5000, 'x');
  const auto accept = GENERATE(std::optional<std::string>(), std::optional<std::string>("gzip"));
  const Reply get = rendered(page(body), accepting(accept));
  const Reply head = rendered(page(body), accepting(accept, true));
  CHECK(head.body.empty());
  CHECK(head.header("Content-Length") == get.header("Content-Length"));
  CHECK(head.header("Content-Encoding") == get.header("Content-Encoding"));
  CHECK(get.header("Content-Length") == std::to_string(get.body.size()));
}

TEST_CASE("Large bodies are compressed for those who ask, and caches are told") {
  const std::string large(kMinCompressed, 'x');
  const Reply zipped = rendered(page(large), accepting("gzip"));
  CHECK(zipped.header("Content-Encoding") == "gzip");
  CHECK(zipped.header("Vary") == "Accept-Encoding");
  CHECK(zipped.body == gzip(large));
  const Reply plain = rendered(page(large), accepting("gzip;q=0"));
  CHECK_FALSE(plain.header("Content-Encoding"));
  CHECK(plain.header("Vary") == "Accept-Encoding");
  CHECK(plain.body == large);
  const Reply small = rendered(page(large.substr(1)), accepting("gzip"));
  CHECK_FALSE(small.header("Content-Encoding"));
  Response encoded = page(large);
  encoded.headers.emplace_back("content-encoding", "br");
  CHECK(rendered(encoded, accepting("gzip")).body == large);
}

TEST_CASE("Headers of the handler come before those of the configuration, and those before the defaults") {
  Response response = page("x");
  response.headers.emplace_back("content-security-policy", "default-src 'self'");
  RenderOptions options;
  options.headers = {{"Content-Security-Policy", "none"}, {"X-Frame-Options", "deny"}, {"X-Content-Type-Options", ""}};
  const Reply reply = rendered(response, options);
  CHECK(reply.head.contains("\r\nContent-Security-Policy: default-src 'self'\r\n"));
  CHECK(reply.header("X-Frame-Options") == "deny");
  CHECK_FALSE(reply.head.contains("nosniff"));
}

TEST_CASE("A header value cannot start another header") {
  Response response = page("x");
  response.headers.emplace_back("Location", "/a\r\nSet-Cookie: b");
  const Reply reply = rendered(response);
  CHECK(reply.header("Location") == "/a  Set-Cookie: b");
  CHECK_FALSE(reply.header("Set-Cookie"));
}

TEST_CASE("A status without body has none") {
  Response response = page("ignored");
  response.status = 204;
  const Reply reply = rendered(response);
  CHECK(reply.status == 204);
  CHECK_FALSE(reply.header("Content-Length"));
  CHECK(reply.body.empty());
}

TEST_CASE("Dates are those of HTTP") {
  using std::chrono::system_clock;
  CHECK(http_date(system_clock::from_time_t(784111777)) == "Sun, 06 Nov 1994 08:49:37 GMT");  // RFC 9110's example
  CHECK(http_date(system_clock::from_time_t(0)) == "Thu, 01 Jan 1970 00:00:00 GMT");
  CHECK(http_date(system_clock::from_time_t(1709210096)) == "Thu, 29 Feb 2024 12:34:56 GMT");
}

}  // namespace
}  // namespace tacho::web
