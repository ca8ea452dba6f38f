// TLS in the kernel (kTLS): behind the handshake a program sends and receives what is inside the records.

#include <fcntl.h>
#include <linux/tls.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "kernel/support/child.h"
#include "kernel/support/records.h"
#include "kernel/support/running.h"
#include "kernel/support/served_in_turn.h"
#include "kernel/support/wire.h"

using tacho::UniqueFd;
using namespace tacho::kernel_test;
using namespace std::string_literals;

namespace {

constexpr int kConnections = 7;
constexpr int kTls = 282;  // SOL_TLS, which older headers lack
constexpr unsigned char kAlertType = 21;
/// An alert (RFC 8446, 6): warning, close_notify.
const std::string kGoodbye = "\1\0"s;
const std::string kFlight = kChangeCipherSpec + kFinished;
constexpr std::size_t kAnswer = 100;
/// Around the data of a record: its header; that, the type and the tag.
constexpr std::size_t kHeader = 5;
constexpr std::size_t kOverhead = 22;

/// Hands a direction of a connection to the kernel, under keys that everybody knows. Where the kernel has no TLS the
/// same lengths go over the wire as they are.
/// @return whether the kernel has TLS
bool encrypt(const UniqueFd& socket, int direction) {
  if (::setsockopt(socket.get(), IPPROTO_TCP, TCP_ULP, "tls", sizeof("tls")) != 0 && errno != EEXIST) {
    must(errno == ENOENT, "TCP_ULP");
    return false;
  }
  tls12_crypto_info_aes_gcm_128 keys{};
  keys.info.version = TLS_1_3_VERSION;
  keys.info.cipher_type = TLS_CIPHER_AES_GCM_128;
  must(::setsockopt(socket.get(), kTls, direction, &keys, sizeof(keys)) == 0, "TLS keys");
  return true;
}

/// One send or receive with room for a record's type, as OpenSSL makes them. `type`: 0 is the application's.
struct Message {
  Message(void* data, std::size_t size) : part{.iov_base = data, .iov_len = size} {
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    header.msg_control = control.data();
    header.msg_controllen = control.size();
  }
  iovec part;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(1)> control{};
  msghdr header{};
};

void say_goodbye(const UniqueFd& socket) {
  std::string data = kGoodbye;
  Message message(data.data(), data.size());
  tls_crypto_info keys{};
  socklen_t size = sizeof(keys);
  cmsghdr* type = CMSG_FIRSTHDR(&message.header);
  type->cmsg_level = kTls;
  type->cmsg_type = TLS_SET_RECORD_TYPE;
  type->cmsg_len = CMSG_LEN(1);
  std::memcpy(CMSG_DATA(type), &kAlertType, 1);
  if (::getsockopt(socket.get(), kTls, TLS_TX, &keys, &size) != 0) {
    message.header.msg_controllen = 0;
  }
  must(::sendmsg(socket.get(), &message.header, MSG_NOSIGNAL) == static_cast<ssize_t>(data.size()), "sendmsg");
}

/// Into the place behind a header of its own, as OpenSSL does.
void receive_record(const UniqueFd& socket, std::size_t size) {
  std::array<char, 4096> data{};
  Message message(data.data(), data.size());
  must(::recvmsg(socket.get(), &message.header, 0) == static_cast<ssize_t>(size), "recvmsg");
}

/// Both directions. Goes on when the parent says so. @return whether the kernel has TLS
bool agree_on_keys(const UniqueFd& connection, Line& parent) {
  const bool known = encrypt(connection, TLS_TX) && encrypt(connection, TLS_RX);
  parent.tell(known ? 2 : 1);
  (void)parent.hear();
  return known;
}

/// A client's part of a handshake of TLS 1.3, in its own process.
UniqueFd shake_hands(std::uint16_t port) {
  UniqueFd connection = connect_tcp(port);
  send_bytes(connection, kHello);
  receive_once(connection, kAnswer);
  send_bytes(connection, kFlight);
  receive_once(connection, kAnswer);
  return connection;
}

/// A reply of so many bytes in a record, or as it is where the kernel has no TLS.
void receive_sealed(const UniqueFd& socket, std::size_t size) {
  std::array<char, 4096> data{};
  const ssize_t got = ::recv(socket.get(), data.data(), data.size(), 0);
  must(got == static_cast<ssize_t>(size) || got == static_cast<ssize_t>(size + kOverhead), "recv");
}

/// Of the server's socket: which directions are in the kernel. OpenSSL 3.0 gives it both under TLS 1.2, under TLS 1.3
/// only what is sent; then records are read as they are.
struct Life {
  std::string name;
  std::vector<std::pair<std::size_t, std::size_t>> turns;  ///< bytes of request and reply, without records
  bool receives;                                           ///< by the kernel, too
  enum { answered, unanswered, none } goodbye;
  int requests;
};

const std::vector<Life>& lives() {
  static const std::vector<Life> all = {
      {"the goodbye is answered", {{120, 100}, {20, 400}}, true, Life::answered, 2},
      {"the goodbye is not answered", {{120, 100}, {20, 400}}, true, Life::unanswered, 2},
      {"no goodbye", {{120, 100}, {20, 400}}, true, Life::none, 2},
      {"messages as short as a goodbye, and one", {{2, 2}, {2, 90}, {60, 2}, {60, 60}}, true, Life::answered, 4},
      {"only what is sent, the goodbye is answered", {{120, 100}, {20, 400}}, false, Life::answered, 2},
      {"only what is sent, the goodbye is not answered", {{120, 100}, {20, 400}}, false, Life::unanswered, 2},
  };
  return all;
}

void live(const UniqueFd& connection, const Life& life, Line& parent) {
  receive_once(connection, kHello.size());
  send_once(connection, kAnswer);
  receive_once(connection, kFlight.size());
  send_once(connection, kAnswer);
  encrypt(connection, TLS_TX);
  if (life.receives) {
    encrypt(connection, TLS_RX);
  }
  parent.tell();
  for (const auto& [request, reply] : life.turns) {
    receive_record(connection, request + (life.receives ? 0 : kOverhead));
    send_once(connection, reply);
  }
  if (life.goodbye != Life::none) {
    receive_record(connection, life.receives ? kGoodbye.size() : kShort.size());
    if (life.goodbye == Life::answered) {
      say_goodbye(connection);
    }
  }
  parent.tell();
  (void)parent.hear();
}

}  // namespace

TEST_CASE("requests over TLS in the kernel are counted, and goodbyes are not") {
  for (const Life& life : lives()) {
    CAPTURE(life.name);
    const Watched where;
    Child server = served_in_turn(where.directory(), kConnections,
                                  [&](const UniqueFd& connection, Line& parent) { live(connection, life, parent); });
    const auto port = static_cast<std::uint16_t>(server.hear());
    for (int i = 0; i < kConnections; ++i) {
      const UniqueFd client = shake_hands(port);
      (void)server.hear();
      if (life.receives) {
        encrypt(client, TLS_TX);
        encrypt(client, TLS_RX);
      }
      for (const auto& [request, reply] : life.turns) {
        if (life.receives) {
          send_once(client, request);
          receive_once(client, reply);
        } else {
          send_bytes(client, record(23, std::string(request + kOverhead - kHeader, 'q')));
          receive_sealed(client, reply);
        }
      }
      if (life.goodbye != Life::none && life.receives) {
        say_goodbye(client);
      } else if (life.goodbye != Life::none) {
        send_bytes(client, kShort);
      }
      (void)server.hear();
      server.tell();
    }
    server.finish();
    CHECK(shared().wait_for([&] { return where.value("tacho_connections_active", {{"role", "server"}}) == 0; }));
    const auto page = shared().page();
    const Labels of_target{{"cgroup", where.path()}};
    CHECK(page.value("tacho_requests_total", of_target) == kConnections * life.requests);
    CHECK(page.value("tacho_handshakes_total", of_target) == kConnections * 2);
    CHECK(page.value("tacho_requests_unanswered_total", of_target) == 0);
    CHECK(page.value("tacho_requests_in_flight", of_target) == 0);
  }
}

TEST_CASE("calls over TLS in the kernel are counted, and a goodbye is not") {
  constexpr int kCalls = 3;
  const Watched where;
  const UniqueFd listener = listen_tcp();
  const auto port = port_of(listener);
  Child client(where.directory(), [port](Line& parent) {
    const UniqueFd connection = shake_hands(port);
    encrypt(connection, TLS_TX);
    encrypt(connection, TLS_RX);
    parent.tell();
    (void)parent.hear();
    ask(connection, kCalls, 120, kAnswer);
    say_goodbye(connection);
    receive_record(connection, kGoodbye.size());
    parent.tell();
    (void)parent.hear();
  });
  const UniqueFd server = accept_from(listener);
  receive_once(server, kHello.size());
  send_bytes(server, kServerHello.substr(0, kAnswer));
  receive_once(server, kFlight.size());
  send_bytes(server, record(23, std::string(kAnswer - kHeader, 't')));
  encrypt(server, TLS_TX);
  encrypt(server, TLS_RX);
  (void)client.hear();
  client.tell();
  serve(server, kCalls, 120, kAnswer);
  receive_record(server, kGoodbye.size());
  say_goodbye(server);
  (void)client.hear();
  CHECK(where.value("tacho_dependency_calls_total", {{"peer", "127.0.0.1:" + std::to_string(port)}}) == kCalls);
  client.tell();
  client.finish();
}

TEST_CASE("connections with TLS in the kernel that are older than tacho say goodbye like others") {
  constexpr int kTurns = 3;
  const bool serves = GENERATE(true, false);
  CAPTURE(serves);
  const Watched where;
  // Nobody watches either of them yet.
  Child server({}, [](Line& parent) {
    const UniqueFd listener = listen_tcp();
    parent.tell(port_of(listener));
    const UniqueFd connection = accept_from(listener);
    if (agree_on_keys(connection, parent)) {
      serve(connection, kTurns, 120, kAnswer);
      receive_record(connection, kGoodbye.size());
      say_goodbye(connection);
    }
    parent.tell();
    (void)parent.hear();
  });
  const auto port = static_cast<std::uint16_t>(server.hear());
  Child client({}, [port](Line& parent) {
    const UniqueFd connection = connect_tcp(port);
    if (agree_on_keys(connection, parent)) {
      ask(connection, kTurns, 120, kAnswer);
      say_goodbye(connection);
      receive_record(connection, kGoodbye.size());
    }
    parent.tell();
    (void)parent.hear();
  });
  const bool known = client.hear() == 2 && server.hear() == 2;
  move_to(where.directory(), (serves ? server : client).pid());
  for (Child* side : {&server, &client}) {
    side->tell();
  }
  for (Child* side : {&server, &client}) {
    (void)side->hear();
    side->tell();
    side->finish();
  }
  if (!known) {
    WARN("skipped: this kernel has no TLS (CONFIG_TLS)");
    return;
  }
  CHECK(where.value("tacho_requests_total") == (serves ? kTurns : 0));
  const auto calls = shared().page().sum("tacho_dependency_calls_total", {{"cgroup", where.path()}});
  CHECK(calls == (serves ? 0 : kTurns));
}

TEST_CASE("several requests in one read of what the kernel decrypts are one, and what is spliced is none") {
  const Watched where;
  const std::string request = "GET / HTTP/1.1\r\nHost: tacho\r\n\r\n";
  const std::string several = request + request + request;
  Child server(where.directory(), [&several](Line& parent) {
    const UniqueFd listener = listen_tcp();
    parent.tell(port_of(listener));
    for (int i = 0; i < kConnections; ++i) {
      const UniqueFd connection = accept_from(listener);
      if (agree_on_keys(connection, parent)) {
        receive_once(connection, several.size());
        send_once(connection, kAnswer);
        std::array<int, 2> pipe{};
        must(::pipe(pipe.data()) == 0, "pipe");
        const UniqueFd out(pipe[0]), in(pipe[1]);
        const auto size = static_cast<ssize_t>(several.size());
        must(::splice(connection.get(), nullptr, in.get(), nullptr, several.size(), 0) == size, "splice");
        send_once(connection, kAnswer);
      }
    }
    parent.tell();
    (void)parent.hear();
  });
  const auto port = static_cast<std::uint16_t>(server.hear());
  bool known = true;
  for (int i = 0; i < kConnections; ++i) {
    const UniqueFd client = connect_tcp(port);
    known = encrypt(client, TLS_TX) && encrypt(client, TLS_RX) && server.hear() == 2;
    server.tell();
    for (int turn = 0; known && turn < 2; ++turn) {
      send_bytes(client, several);
      receive_once(client, kAnswer);
    }
    if (!known) {
      WARN("skipped: this kernel has no TLS (CONFIG_TLS)");
      server.kill();
      return;
    }
  }
  (void)server.hear();
  const auto page = shared().page();
  const Labels of_target{{"cgroup", where.path()}};
  CHECK(page.value("tacho_requests_total", of_target) == kConnections);
  CHECK(page.value("tacho_multiplexed_connections_total", of_target) == 0);
  CHECK(page.value("tacho_socket_operations_total", {{"cgroup", where.path()}, {"direction", "receive"}}) ==
        kConnections);
  server.tell();
  server.finish();
}
