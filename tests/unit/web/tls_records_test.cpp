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

/// A connection as OpenSSL makes it, that asks for no certificate.
class TlsConnection {
 public:
  /// @param version the highest; 0: OpenSSL's
  explicit TlsConnection(const std::string& address, int version = 0, SSL_SESSION* resumed = nullptr)
      : client_(address) {
    SSL_set_max_proto_version(ssl_.get(), version);
    SSL_set_fd(ssl_.get(), client_.fd());
    if (resumed != nullptr) {
      SSL_set_session(ssl_.get(), resumed);
    }
    REQUIRE(SSL_connect(ssl_.get()) == 1);
  }
  [[nodiscard]] SSL* get() const { return ssl_.get(); }
  /// What comes back first; "closed": nothing does.
  [[nodiscard]] std::string ask() const {
    const std::string request = test::get_request("/metrics");
    SSL_write(ssl_.get(), request.data(), static_cast<int>(request.size()));
    std::array<char, 4096> answer{};
    const int size = SSL_read(ssl_.get(), answer.data(), answer.size());
    return size > 0 ? std::string(answer.data(), static_cast<std::size_t>(size)) : "closed";
  }

 private:
  Client client_;
  std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context_{SSL_CTX_new(TLS_client_method()), SSL_CTX_free};
  std::unique_ptr<SSL, decltype(&SSL_free)> ssl_{SSL_new(context_.get()), SSL_free};
};

/// What comes back to a request that is made after so many changes of the key.
std::string ask_after_new_keys(const std::string& address, int count) {
  const TlsConnection connection(address);
  for (int i = 0; i < count; ++i) {
    if (SSL_key_update(connection.get(), SSL_KEY_UPDATE_NOT_REQUESTED) != 1 ||
        SSL_do_handshake(connection.get()) != 1) {
      return "closed";
    }
  }
  return connection.ask();
}

TEST_CASE_METHOD(Certified, "Who changes the key without end is not listened to") {
  const RunningServer server(test::one_page(), configure());
  CHECK(ask_after_new_keys(server.address(), 100).starts_with("HTTP/1.1 200"));
  CHECK(ask_after_new_keys(server.address(), kMany) == "closed");
}

TEST_CASE_METHOD(Certified, "Nobody negotiates anew on a connection") {
  const RunningServer server(test::one_page(), configure());
  const TlsConnection connection(server.address(), TLS1_2_VERSION);
  REQUIRE(SSL_renegotiate(connection.get()) == 1);
  CHECK(SSL_do_handshake(connection.get()) != 1);
  CHECK(TlsConnection(server.address(), TLS1_2_VERSION).ask().starts_with("HTTP/1.1 200"));
}

TEST_CASE_METHOD(Certified, "No session is kept for a client, nor given to it") {
  const RunningServer server(test::one_page(), configure());
  for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    CAPTURE(version);
    const TlsConnection first(server.address(), version);
    CHECK(first.ask().starts_with("HTTP/1.1 200"));
    const std::unique_ptr<SSL_SESSION, decltype(&SSL_SESSION_free)> session(SSL_get1_session(first.get()),
                                                                            SSL_SESSION_free);
    CHECK(SSL_SESSION_has_ticket(session.get()) == 0);
    const TlsConnection second(server.address(), version, session.get());
    CHECK(SSL_session_reused(second.get()) == 0);
  }
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
