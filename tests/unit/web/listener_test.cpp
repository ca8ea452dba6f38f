#include "web/listener.h"

#include <sys/socket.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <utility>

#include "client.h"
#include "temp_dir.h"

namespace tacho::web {
namespace {

using test::Client;

Listener open(const std::string& text) {
  const auto address = ListenAddress::parse(text);
  REQUIRE(address);
  auto listener = Listener::open(*address);
  INFO((listener ? "" : listener.error().message));
  REQUIRE(listener);
  return std::move(*listener);
}

Error refusal(const std::string& text) {
  const auto address = ListenAddress::parse(text);
  if (!address) {
    return address.error();
  }
  auto listener = Listener::open(*address);
  REQUIRE_FALSE(listener);
  return listener.error();
}

bool accepts(const Listener& listener, const std::string& address) {
  const Client client(address);
  return UniqueFd(::accept(listener.fd(), nullptr, nullptr)).get() >= 0;
}

TEST_CASE("A unix socket without its directory is refused with what to do") {
  const Error error = refusal("unix:/nonexistent/tacho.sock");
  CHECK(error.message.contains("unix:/nonexistent/tacho.sock"));
  CHECK(error.message.contains("make its directory"));
}

TEST_CASE("A listen address in Prometheus' notation is taken apart") {
  const auto any = ListenAddress::parse(":9100");
  REQUIRE(any);
  CHECK(any->host.empty());
  CHECK(any->port == 9100);
  const auto v6 = ListenAddress::parse("[fe80::1%eth0]:0");
  REQUIRE(v6);
  CHECK(v6->host == "fe80::1%eth0");
  CHECK(v6->port == 0);
  const auto name = ListenAddress::parse("localhost:65535");
  REQUIRE(name);
  CHECK(name->host == "localhost");
  CHECK(name->port == 65535);
  const auto unix_socket = ListenAddress::parse("unix:/run/a:b");
  REQUIRE(unix_socket);
  CHECK(unix_socket->is_unix);
  CHECK(unix_socket->host == "/run/a:b");
}

TEST_CASE("A malformed listen address is an error that names it and the remedy") {
  using namespace std::string_literals;
  const auto text =
      GENERATE("", ":", "9100", ":65536", ":-1", ":+80", ":http", ":80 ", "1.2.3.4", "::1:80", "[::1]", "[::1:80",
               "::1]:80", "a b:80", "http://x:80", "[]x:80", "unix:", "unix:relative", "unix:@");
  const auto address = ListenAddress::parse(text);
  INFO(text);
  REQUIRE_FALSE(address);
  CHECK(address.error().message.contains("'"s + text + "'"));
  CHECK(address.error().message.contains("127.0.0.1:9100"));
  CHECK_FALSE(ListenAddress::parse("unix:/" + std::string(107, 'x')));
  CHECK(ListenAddress::parse("unix:/" + std::string(106, 'x')));
}

TEST_CASE("Without a host, IPv4 and IPv6 are both served") {
  const Listener listener = open(":0");
  const std::string port = listener.bound().substr(listener.bound().rfind(':'));
  CHECK(listener.bound() == "[::]" + port);
  CHECK(port != ":0");
  CHECK(accepts(listener, "127.0.0.1" + port));
  CHECK(accepts(listener, "[::1]" + port));
}

TEST_CASE("An address of one family is bound to that family alone") {
  const Listener v6 = open("[::1]:0");
  CHECK(v6.bound().starts_with("[::1]:"));
  CHECK(accepts(v6, v6.bound()));
  const Listener v4 = open("127.0.0.1:0");
  CHECK(v4.bound().starts_with("127.0.0.1:"));
  CHECK(accepts(v4, v4.bound()));
  CHECK(open("localhost:0").bound().starts_with("127.0.0.1:"));
}

TEST_CASE("A port in use is an error that names the address and the remedy") {
  const Listener first = open("127.0.0.1:0");
  const Error error = refusal(first.bound());
  CHECK(error.code == EADDRINUSE);
  CHECK(error.message.contains(first.bound()));
  CHECK(error.message.contains("--web.listen-address"));
  const Listener any = open(":0");
  CHECK(refusal(any.bound().substr(any.bound().rfind(':'))).code == EADDRINUSE);
}

TEST_CASE("An address that this machine does not have is an error") {
  CHECK(refusal("192.0.2.1:0").code == EADDRNOTAVAIL);                                 // RFC 5737: for documentation
  CHECK(refusal("no-such-host.invalid:80").message.contains("no-such-host.invalid"));  // RFC 6761
}

TEST_CASE("A unix socket replaces a stale file, and removes its own") {
  const test::TempDir dir;
  const std::string path = dir / "s";
  {
    const Listener listener = open("unix:" + path);
    CHECK(listener.bound() == "unix:" + path);
    CHECK(accepts(listener, listener.bound()));
    const Error error = refusal("unix:" + path);
    CHECK(error.code == EADDRINUSE);
    CHECK(error.message.contains(path));
  }
  CHECK_FALSE(std::filesystem::exists(path));
  {
    const Listener killed = open("unix:" + path);
    std::filesystem::rename(path, path + ".kept");
  }
  std::filesystem::rename(path + ".kept", path);  // what a killed process leaves behind
  const Listener next = open("unix:" + path);
  CHECK(accepts(next, next.bound()));
}

TEST_CASE("A file that is no socket is left alone") {
  const test::TempDir dir;
  const auto path = dir.write("precious", "data");
  CHECK(refusal("unix:" + path.string()).code == EADDRINUSE);
  CHECK(std::filesystem::file_size(path) == 4);
  CHECK(refusal("unix:" + (dir / "missing/s").string()).code == ENOENT);
}

TEST_CASE("An abstract unix socket needs no file") {
  const Listener listener = open("unix:@tacho-test-" + std::to_string(::getpid()));
  CHECK(accepts(listener, listener.bound()));
}

}  // namespace
}  // namespace tacho::web
