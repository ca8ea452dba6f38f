#include <catch2/catch.hpp>
#include <list>
#include <random>

#include "running_server.h"

namespace tacho::web {
namespace {

using std::chrono_literals::operator""ms;
using test::Client;
using test::get;
using test::RunningServer;

std::vector<Route> routes() {
  auto routes = test::one_page();
  // Fits into no socket buffer.
  routes.push_back(
      test::get_route("/large", [](const Request&) { return test::text_response(std::string(8'000'000, 'x')); }));
  routes.push_back(
      {.path = "/post", .methods = {"POST"}, .handler = [](const Request&) { return test::text_response("ok"); }});
  return routes;
}

void check_scrape(const std::string& address) {
  CHECK(test::prompt([&] { return get(address, "/metrics").body == "up 1\n"; }));
}

/// Many connections that send the same and then nothing.
std::list<Client> crowd(const std::string& address, int count, std::string_view bytes, int receive_buffer = 0) {
  std::list<Client> clients;
  for (int i = 0; i < count; ++i) {
    clients.emplace_back(address, receive_buffer).send(bytes);
  }
  return clients;
}

/// Two seconds are promised, on a machine that has time for us; the clients' timeouts would be five and ten.
void check_stop(RunningServer& server) {
  const auto start = std::chrono::steady_clock::now();
  server.stop();
  CHECK(test::since(start) < 4000ms);
}

TEST_CASE("Half-open connections do not delay a scrape", "[slow]") {
  RunningServer server(routes());
  const auto clients = crowd(server.address(), GENERATE(100, 1000), "");
  check_scrape(server.address());
  check_stop(server);
}

TEST_CASE("Dripping headers do not delay a scrape", "[slow]") {
  RunningServer server(routes());
  const auto clients = crowd(server.address(), 100, "GET /metrics HTTP/1.1\r\n");
  for (int i = 0; i < 20; ++i) {
    for (const Client& client : clients) {
      client.send("a");
    }
    check_scrape(server.address());
  }
  check_stop(server);
}

TEST_CASE("Clients that do not read their responses do not delay a scrape", "[slow]") {
  RunningServer server(routes());
  const auto clients = crowd(server.address(), 60, test::get_request("/large"), 4096);
  for (int i = 0; i < 3; ++i) {
    check_scrape(server.address());
  }
  const auto statistics = server.statistics();
  CHECK(statistics.open + statistics.cut_off >= 60);  // some had to make room
  check_stop(server);
}

TEST_CASE("Clients that keep their bodies back do not delay a scrape", "[slow]") {
  RunningServer server(routes());
  const auto clients = crowd(server.address(), 600, "POST /post HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\nx");
  for (int i = 0; i < 3; ++i) {
    check_scrape(server.address());
  }
  check_stop(server);
}

TEST_CASE("A request that comes byte by byte is served", "[slow]") {
  const RunningServer server(routes());
  const Client client(server.address());
  const std::string request = test::get_request("/metrics");
  for (const char byte : request) {
    client.send(std::string_view(&byte, 1));
  }
  CHECK(test::Reply::parse(client.read_all()).body == "up 1\n");
}

TEST_CASE("Random bytes do not harm the server", "[slow]") {
  RunningServer server(routes());
  std::minstd_rand random(23);
  const std::string valid = test::get_request("/metrics", "Accept-Encoding: gzip\r\nAuthorization: Basic eDp5\r\n");
  for (int i = 0; i < 500; ++i) {
    std::string bytes = valid;
    for (unsigned change = random() % 8; change > 0; --change) {
      bytes[random() % bytes.size()] = static_cast<char>(random());
    }
    bytes.resize(random() % (bytes.size() + 1));
    const Client client(server.address());
    client.send(bytes);
    if (i % 2 == 0) {
      client.finish();
      const std::string answer = client.read_all();
      CHECK((answer.empty() || answer.starts_with("HTTP/1.1 ")));
    }
  }
  check_scrape(server.address());
  check_stop(server);
}

}  // namespace
}  // namespace tacho::web
