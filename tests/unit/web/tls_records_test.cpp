// Clients that say nothing in many records of TLS: reading them would keep the gate from everybody else.
#include <openssl/ssl.h>

#include <array>
#include <catch2/catch.hpp>
#include <memory>

#include "certified.h"
#include "running_server.h"

namespace tacho::web {
namespace {

using test::Certified;
using test::Client;
using test::RunningServer;

constexpr int kMany = 20'000;

/// What comes back to a request that is made after so many changes of the key.
std::string ask_after_new_keys(const std::string& address, int count) {
  const Client client(address);
  const std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context(SSL_CTX_new(TLS_client_method()), SSL_CTX_free);
  const std::unique_ptr<SSL, decltype(&SSL_free)> ssl(SSL_new(context.get()), SSL_free);
  SSL_set_fd(ssl.get(), client.fd());
  REQUIRE(SSL_connect(ssl.get()) == 1);
  for (int i = 0; i < count; ++i) {
    if (SSL_key_update(ssl.get(), SSL_KEY_UPDATE_NOT_REQUESTED) != 1 || SSL_do_handshake(ssl.get()) != 1) {
      return "closed";
    }
  }
  const std::string request = test::get_request("/metrics");
  SSL_write(ssl.get(), request.data(), static_cast<int>(request.size()));
  std::array<char, 4096> answer{};
  const int size = SSL_read(ssl.get(), answer.data(), answer.size());
  return size > 0 ? std::string(answer.data(), static_cast<std::size_t>(size)) : "closed";
}

TEST_CASE_METHOD(Certified, "Who changes the key without end is not listened to") {
  const RunningServer server(test::one_page(), configure());
  CHECK(ask_after_new_keys(server.address(), 100).starts_with("HTTP/1.1 200"));
  CHECK(ask_after_new_keys(server.address(), kMany) == "closed");
}

TEST_CASE_METHOD(Certified, "A hello in records of one byte has an end") {
  const RunningServer server(test::one_page(), configure());
  // The beginning of one that is as long as may be.
  std::string hello("\x01\x01\xff\x00\x03\x03", 6);
  hello.resize(kMany);
  std::string records;
  for (const char byte : hello) {
    records += std::string("\x16\x03\x01\x00\x01", 5) + byte;
  }
  const Client client(server.address());
  client.send(records);
  CHECK(client.read_all().empty());
  CHECK(server.statistics().timed_out == 0);
}

}  // namespace
}  // namespace tacho::web
