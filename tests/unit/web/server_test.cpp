#include "web/server.h"

#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <semaphore>
#include <stdexcept>
#include <thread>

#include "running_server.h"
#include "temp_dir.h"
#include "web/encoding.h"

namespace tacho::web {
namespace {

using std::chrono_literals::operator""ms;
using test::Client;
using test::get;
using test::Reply;
using test::round_trip;
using test::RunningServer;
using test::text_response;

/// Answers with what it understood of the request.
Response echo(const Request& request) {
  return text_response(request.method + '|' + request.path + '|' + request.query + '|' +
                       request.header("x-test").value_or("-") + '|' + request.remote);
}

std::string headers(int count) {
  std::string lines;
  for (int i = 0; i < count; ++i) {
    lines += "X-" + std::to_string(i) + ": a\r\n";
  }
  return lines;
}

/// 20 MB.
std::string large_body() {
  std::string body;
  body.resize(20'000'000, 'x');
  return body;
}

std::vector<Route> routes() {
  return {
      {.path = "/echo", .methods = {"GET", "POST"}, .handler = echo},
      {.path = "/-/reload", .methods = {"POST"}, .handler = [](const Request&) { return text_response("reloaded"); }},
      test::get_route("/metrics", [](const Request&) { return text_response("up 1\n"); }),
      test::get_route("/large", [](const Request&) { return text_response(large_body()); }),
      test::get_route("/throw", [](const Request&) -> Response { throw std::runtime_error("secret detail"); }),
      test::get_route("/throw-int", [](const Request&) -> Response { throw 7; }),
  };
}

TEST_CASE("A handler gets the request, and its response arrives") {
  const RunningServer server(routes());
  const Reply reply = get(server.address(), "/echo?a=b%20c&d", "X-TEST: value\r\n");
  CHECK(reply.status == 200);
  CHECK(reply.body == "GET|/echo|a=b%20c&d|value|127.0.0.1");
  CHECK(reply.header("Content-Type") == "text/plain; charset=utf-8");
  CHECK(reply.header("Content-Length") == std::to_string(reply.body.size()));
  CHECK(reply.header("X-Content-Type-Options") == "nosniff");
}

TEST_CASE("A path matches as a whole and undecoded") {
  const RunningServer server(routes());
  const auto path = GENERATE("/metricsxyz", "/metrics/", "/metric", "/", "//metrics", "/Metrics", "/metrics%00",
                             "/%6detrics", "/./metrics", "/a/../metrics", "/metrics;x");
  INFO(path);
  CHECK(get(server.address(), path).status == 404);
}

TEST_CASE("A wrong method is told which are right") {
  const RunningServer server(routes());
  const Reply post = round_trip(server.address(), "POST /metrics HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n");
  CHECK(post.status == 405);
  CHECK(post.header("Allow") == "GET, HEAD");
  CHECK(get(server.address(), "/-/reload").header("Allow") == "POST");
  CHECK(round_trip(server.address(), "OPTIONS /echo HTTP/1.1\r\nHost: a\r\n\r\n").header("Allow") == "GET, HEAD, POST");
}

TEST_CASE("HEAD gets the headers of GET and no body") {
  const RunningServer server(routes());
  const Reply head = round_trip(server.address(), "HEAD /metrics HTTP/1.1\r\nHost: a\r\n\r\n");
  CHECK(head.status == 200);
  CHECK(head.header("Content-Length") == "5");
  CHECK(head.body.empty());
  CHECK(round_trip(server.address(), "HEAD /-/reload HTTP/1.1\r\nHost: a\r\n\r\n").status == 405);
}

TEST_CASE("Conditions and ranges are not for pages that are made anew each time") {
  const RunningServer server(routes());
  for (const char* const header : {"Range: bytes=0-1\r\n", "Range: bytes=99-\r\n", "If-Match: \"x\"\r\n",
                                   "If-None-Match: *\r\n", "If-Modified-Since: Fri, 01 Jan 2100 00:00:00 GMT\r\n"}) {
    INFO(header);
    const Reply reply = get(server.address(), "/metrics", header);
    CHECK(reply.status == 200);
    CHECK(reply.body == "up 1\n");
  }
}

TEST_CASE("Methods that no page has are refused") {
  const RunningServer server(routes());
  for (const auto& [method, status] : {std::pair{"PUT", 405},
                                       {"DELETE", 405},
                                       {"TRACE", 400},
                                       {"PATCH", 405},
                                       {"CONNECT", 405},
                                       {"BREW", 400},
                                       {"get", 400}}) {
    INFO(method);
    const std::string request = std::string(method) + " /metrics HTTP/1.1\r\nHost: a\r\n\r\n";
    CHECK(round_trip(server.address(), request).status == status);
  }
}

TEST_CASE("Who announces a body is refused at once, and reads the answer") {
  const RunningServer server(routes());
  const std::string start = "POST /echo HTTP/1.1\r\nHost: a\r\n";
  const auto status = [&](const std::string& more) { return round_trip(server.address(), start + more).status; };
  CHECK(status("Content-Length: 5\r\n\r\n") == 413);
  CHECK(status("Content-Length: 5\r\n\r\nhello") == 413);
  CHECK(status("Content-Length: 500000\r\n\r\n" + std::string(500'000, 'b')) == 413);
  CHECK(status("Content-Length: 99999999999999999999\r\n\r\n") == 413);
  CHECK(status("Transfer-Encoding: chunked\r\n\r\n") == 411);
  CHECK(status("Content-Length: 0\r\n\r\n") == 200);
}

TEST_CASE("What a handler throws becomes a 500 that tells nothing, and a line in the log") {
  RunningServer server(routes());
  const Reply reply = get(server.address(), "/throw");
  CHECK(reply.status == 500);
  CHECK_FALSE(reply.body.contains("secret"));
  CHECK(get(server.address(), "/throw-int").status == 500);
  CHECK(get(server.address(), "/metrics").status == 200);
  CHECK(server.log().contains("GET /throw failed: secret detail"));
}

TEST_CASE("A large response arrives whole, compressed for those who ask") {
  const RunningServer server(routes());
  const Reply plain = get(server.address(), "/large");
  CHECK(plain.body.size() == 20'000'000);
  CHECK_FALSE(plain.header("Content-Encoding"));
  const Reply zipped = get(server.address(), "/large", "Accept-Encoding: gzip\r\n");
  CHECK(zipped.header("Content-Encoding") == "gzip");
  CHECK(zipped.body == gzip(plain.body));
}

TEST_CASE("Malformed requests get a 4xx or a closed connection") {
  const RunningServer server(routes());
  const std::string large(20'000, 'x');
  const auto [bytes, status] = GENERATE_COPY(table<std::string, int>({
      {"GET /metrics HTTP/1.1\nHost: a\n\n", 200},  // lenient
      {"\r\nGET /metrics HTTP/1.1\r\nHost: a\r\n\r\n", 200},
      {"GET /metrics HTTP/1.0\r\n\r\n", 200},
      {"GET /metrics HTTP/1.1\r\nHost: a\r\nA: b\r\n\r\nGET /garb", 200},
      {"GET http://a:80/metrics HTTP/1.1\r\nHost: a\r\n\r\n", 200},
      {"GET http:///metrics HTTP/1.1\r\nHost: a\r\n\r\n", 400},
      {"GET http://a HTTP/1.1\r\nHost: a\r\n\r\n", 404},
      {"GET /metrics HTTP/1.1\r\n\r\n", 400},
      {"GET /metrics HTTP/1.1\r\nHost: a\r\nhost: b\r\n\r\n", 400},
      {"GET /metrics HTTP/1.1\r\nHost : a\r\n\r\n", 400},
      {"GET /metrics HTTP/1.1\r\nHost: a\r\nA: b\r\n c\r\n\r\n", 400},
      {"GET /metrics\r\n\r\n", 400},
      {"GET  HTTP/1.1\r\n\r\n", 400},
      {"GET /metrics HTTP/2.0\r\n\r\n", 505},
      {"GET /metrics HTTP/1.10\r\n\r\n", 505},
      {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400},
      {"BREW /metrics HTTP/1.1\r\nHost: a\r\n\r\n", 400},
      {"GET metrics HTTP/1.1\r\nHost: a\r\n\r\n", 400},
      {"GET /metrics HTTP/1.1\r\nHost: a\r\nno colon\r\n\r\n", 400},
      {"GET /metrics HTTP/1.1\r\nHost: a\r\n: no name\r\n\r\n", 400},
      {"GET /metrics HTTP/1.1\r\nHost: a\r\nA: \x01\r\n\r\n", 400},
      {std::string("GET /met\0rics HTTP/1.1\r\n\r\n", 26), 400},
      {"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: -5\r\n\r\n", 400},
      {"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n", 400},
      {"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: +5\r\n\r\n", 400},
      {"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 5, 5\r\n\r\n", 400},
      {"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nContent-Length: 0\r\n\r\n", 400},
      {"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length : 0\r\n\r\n", 400},
      {"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
      {"POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n", 411},
      {"GET /" + large + " HTTP/1.1\r\n\r\n", 431},
      {"GET /metrics HTTP/1.1\r\nA: " + large + "\r\n\r\n", 431},
      {"GET /metrics HTTP/1.1\r\nHost: a\r\n" + headers(63) + "\r\n", 200},
      {"GET /metrics HTTP/1.1\r\nHost: a\r\n" + headers(64) + "\r\n", 431},
      {std::string("\x16\x03\x01\x00\xa5\x01\x00\x00\xa1\x03\x03", 11), 400},
      {"GET /metr", 400},
      {"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", 404},
  }));
  INFO(bytes.substr(0, 60));
  const Client client(server.address());
  client.send(bytes);
  client.finish();
  CHECK(Reply::parse(client.read_all()).status == status);
  CHECK(get(server.address(), "/metrics").status == 200);
}

TEST_CASE("All listeners serve: every address, one address, unix sockets") {
  const test::TempDir dir;
  const RunningServer server(routes(), "", {":0", "[::1]:0", "unix:" + (dir / "socket").string()});
  CHECK(get(test::loopback(server.address(0)), "/metrics").status == 200);
  CHECK(get("[::1]" + server.address(0).substr(4), "/metrics").status == 200);
  CHECK(get(server.address(1), "/echo").body.ends_with("|::1"));
  CHECK(get(server.address(2), "/metrics").status == 200);
}

TEST_CASE("A server that cannot start says where and why") {
  Liveness liveness;
  const RunningServer first(routes());
  const auto start = [&](std::vector<std::string> addresses, const std::optional<std::string>& config = {}) {
    const auto started =
        Server::start({.listen_addresses = std::move(addresses), .web_config_file = config}, {}, liveness);
    REQUIRE_FALSE(started);
    return started.error().message;
  };
  CHECK(start({first.address()}).contains(first.address()));
  CHECK(start({"127.0.0.1:0", "nonsense"}).contains("nonsense"));
  CHECK(start({}).contains("--web.listen-address"));
  CHECK(start({"127.0.0.1:0"}, "/does/not/exist.yml").contains("/does/not/exist.yml"));
  const test::TempDir dir;
  CHECK(start({"127.0.0.1:0"}, dir.write("web.yml", "tls: {}\n").string()).contains("web.yml:1:1"));
}

TEST_CASE("Its port is free as soon as a server is gone") {
  std::string address;
  for (int i = 0; i < 5; ++i) {
    const RunningServer server(routes(), "", {address.empty() ? "127.0.0.1:0" : address});
    address = server.address();
    CHECK(get(address, "/metrics").status == 200);
  }
}

TEST_CASE("A running request ends before the server does, and the port is free meanwhile") {
  Liveness liveness;
  std::binary_semaphore started(0);
  std::binary_semaphore finish(0);
  RunningServer server({test::get_route("/slow", [&](const Request&) {
    started.release();
    finish.acquire();
    return text_response("done");
  })});
  const std::string address = server.address();
  const Client client(address);
  client.send(test::get_request("/slow"));
  started.acquire();
  std::thread stopping([&] { server.stop(); });
  const auto begin = std::chrono::steady_clock::now();
  auto successor = Server::start({.listen_addresses = {address}, .web_config_file = {}}, {}, liveness);
  while (!successor && test::since(begin) < 10'000ms) {
    successor = Server::start({.listen_addresses = {address}, .web_config_file = {}}, {}, liveness);
  }
  CHECK(successor);
  finish.release();
  stopping.join();
  CHECK(Reply::parse(client.read_all()).body == "done");
}

TEST_CASE("The server's threads take no signals") {
  const RunningServer server(routes());
  int threads = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    if (task.path().filename() == std::to_string(::getpid())) {
      continue;  // the main thread
    }
    std::ifstream status(task.path() / "status");
    for (std::string line; std::getline(status, line);) {
      if (line.starts_with("SigBlk:")) {
        const auto blocked = std::stoull(line.substr(8), nullptr, 16);
        for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGCHLD}) {
          CHECK((blocked >> static_cast<unsigned>(signal - 1) & 1U) == 1);
        }
        ++threads;
      }
    }
  }
  CHECK(threads >= 7);  // gate, handlers, the makers of pages and the checker of passwords
}

TEST_CASE("Nothing is left behind") {
  const auto descriptors = [] {
    const std::filesystem::directory_iterator all("/proc/self/fd");
    return std::distance(begin(all), end(all));
  };
  {
    const RunningServer warm_up(routes());
  }
  const auto before = descriptors();
  for (int i = 0; i < 3; ++i) {
    const RunningServer server(routes());
    CHECK(get(server.address(), "/metrics").status == 200);
    const Client half_open(server.address());
  }
  CHECK(descriptors() == before);
}

}  // namespace
}  // namespace tacho::web
