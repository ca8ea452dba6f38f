// The client against the real server: plain, TLS, authentication, unix sockets, and what is said when it fails.

#include "top/client.h"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <string>

#include "unit/web/bcrypt_hash.h"
#include "unit/web/certificates.h"
#include "unit/web/running_server.h"
#include "unit/web/temp_dir.h"

using namespace tacho;
using tacho::top::Client;
using web::test::get_route;
using web::test::RunningServer;
using web::test::text_response;

namespace {

std::unique_ptr<Client> client_of(const std::string& url, const std::string& ca_file = {}) {
  auto parsed = top::parse_url(url);
  REQUIRE(parsed);
  auto client = Client::open(std::move(*parsed), {.ca_file = ca_file});
  REQUIRE(client);
  return std::move(*client);
}

std::string refusal(const Result<std::string>& answer) {
  REQUIRE_FALSE(answer);
  return answer.error().message;
}

std::vector<web::Route> big_page() {
  return {get_route(
      "/big", [](const web::Request& request) { return text_response(std::string(1'000'000, 'x') + request.query); })};
}

}  // namespace

TEST_CASE("a page comes as it was sent") {
  const RunningServer server(big_page());
  CHECK(*client_of("http://" + server.address())->get("/big?a=%20b") == std::string(1'000'000, 'x') + "a=%20b");
}

TEST_CASE("a unix socket is as good") {
  const web::test::TempDir directory;
  const std::string address = "unix:" + (directory / "socket").string();
  const RunningServer server(big_page(), {}, {address});
  CHECK(client_of(address)->get("/big"));
}

TEST_CASE("a unix socket without a file is as good") {
  const std::string address = "unix:@tacho-top-" + std::to_string(::getpid());
  const RunningServer server(big_page(), {}, {address});
  CHECK(client_of(address)->get("/big"));
}

TEST_CASE("a server with TLS is trusted by its authority's certificate only, and by its name") {
  const web::test::TempDir directory;
  const web::test::Authority authority("test authority");
  const web::test::Identity identity = authority.issue("server", "IP:127.0.0.1");
  directory.write("server.crt", identity.certificate);
  directory.write("server.key", identity.key);
  const auto ca_file = directory.write("ca.crt", authority.certificate());
  const auto config = directory.write("web.yml", "tls_server_config: {cert_file: server.crt, key_file: server.key}\n");
  const RunningServer server(big_page(), config);
  const std::string port = server.address().substr(server.address().rfind(':'));
  CHECK(client_of("https://127.0.0.1" + port, ca_file)->get("/big"));
  CHECK(refusal(client_of("https://127.0.0.1" + port)->get("/big")).find("--ca-file") != std::string::npos);
  CHECK_FALSE(client_of("https://localhost" + port, ca_file)->get("/big"));
  CHECK_FALSE(client_of("http://127.0.0.1" + port)->get("/big"));
}

TEST_CASE("a CA file that is none is refused at once") {
  const web::test::TempDir directory;
  auto url = top::parse_url("https://127.0.0.1");
  const auto refused = Client::open(*url, {.ca_file = directory.write("ca.crt", "x")});
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message.starts_with("--ca-file: "));
}

TEST_CASE("a password is asked for and given") {
  const web::test::TempDir directory;
  const auto config =
      directory.write("web.yml", "basic_auth_users: {me: '" + web::test::bcrypt_hash("se:cr@t") + "'}\n");
  const RunningServer server(big_page(), config);
  CHECK(client_of("http://me:se:cr@t@" + server.address())->get("/big"));
  for (const std::string login : {"", "me@", "me:wrong@"}) {
    const auto answer = client_of("http://" + login + server.address())->get("/big");
    CHECK(refusal(answer).find("--password-file") != std::string::npos);
    CHECK(refusal(answer).find("wrong") == std::string::npos);
  }
}

TEST_CASE("nobody there: the message says where it looked and what to do") {
  CHECK(refusal(client_of("http://127.0.0.1:1")->get("/")).find("is tacho running there? --url") != std::string::npos);
  CHECK(refusal(client_of("unix:/no/such/socket")->get("/")).starts_with("unix:/no/such/socket: "));
}

TEST_CASE("something else there") {
  const RunningServer server(big_page());
  CHECK(refusal(client_of("http://" + server.address())->get("/api")).find("nothing of tacho is served there") !=
        std::string::npos);
}

TEST_CASE("cancelled, it asks no more") {
  const RunningServer server(big_page());
  const auto client = client_of("http://" + server.address());
  client->cancel();
  CHECK_FALSE(client->get("/big"));
}
