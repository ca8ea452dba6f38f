// Lives that end, or are ended, at each moment of an exchange: before the server accepts, reads, answers, and
// afterwards.

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <functional>
#include <string>
#include <vector>

#include "kernel/support/child.h"
#include "kernel/support/running.h"
#include "kernel/support/wire.h"

using tacho::UniqueFd;
using namespace tacho::kernel_test;

namespace {

constexpr int kConnections = 5;
constexpr std::size_t kSize = 10;

/// Reads to the end of the stream. @return how much that was; −1: it was reset
ssize_t read_rest(const UniqueFd& socket) {
  std::array<char, 64> buffer{};
  ssize_t all = 0;
  for (;;) {
    const ssize_t got = ::recv(socket.get(), buffer.data(), buffer.size(), 0);
    if (got <= 0) {
      return got < 0 ? got : all;
    }
    all += got;
  }
}

/// Runs it in a forked process, and waits for that.
void in_a_child(const std::function<void()>& work) {
  const pid_t child = ::fork();
  must(child >= 0, "fork");
  if (child == 0) {
    work();
    ::_exit(0);
  }
  int status = 0;
  must(::waitpid(child, &status, 0) == child && status == 0, "waitpid");
}

struct Life {
  std::string name;
  std::function<void(UniqueFd&)> serve;  ///< one connection, from its acceptance to its end
  std::function<void(UniqueFd&)> ask;    ///< returns when the client has done its part
  int requests = 0;                      ///< of each connection
  int unanswered = 0;
  bool late = false;  ///< the server accepts when the client has done its part
};

std::vector<Life> lives() {
  const auto exchange = [](UniqueFd& connection) { serve(connection, 1, kSize, kSize); };
  return {
      {"reset before it is accepted", [](UniqueFd& connection) { must(read_rest(connection) < 0, "ECONNRESET"); },
       [](UniqueFd& client) {
         send_once(client, kSize);
         reset_connection(client);
       },
       0, 0, true},
      {"closed before it is accepted", exchange,
       [](UniqueFd& client) {
         send_once(client, kSize);
         client.reset();
       },
       1, 0, true},
      {"closed without a word, before it is accepted",
       [](UniqueFd& connection) { must(read_rest(connection) == 0, "the end"); },
       [](UniqueFd& client) { client.reset(); }, 0, 0, true},
      {"a part of a request, and the end",
       [](UniqueFd& connection) { must(read_rest(connection) == kSize / 2, "half a request"); },
       [](UniqueFd& client) {
         send_once(client, kSize / 2);
         client.reset();
       },
       0, 1},
      {"the server closes with a request unread",
       [](UniqueFd& connection) {
         pollfd waiting{.fd = connection.get(), .events = POLLIN, .revents = 0};
         must(::poll(&waiting, 1, 10'000) == 1, "a request");
       },
       [](UniqueFd& client) {
         send_once(client, kSize);
         wait_for_end(client);
       }},
      {"the server wants nothing more to read, and answers",
       [](UniqueFd& connection) {
         receive_once(connection, kSize);
         must(::shutdown(connection.get(), SHUT_RD) == 0, "shutdown");
         send_once(connection, kSize);
       },
       [](UniqueFd& client) { ask(client, 1, kSize, kSize); }, 1},
      {"the server says goodbye and reads what still comes",
       [exchange](UniqueFd& connection) {
         exchange(connection);
         must(::shutdown(connection.get(), SHUT_WR) == 0, "shutdown");
         must(read_rest(connection) == kSize, "the rest");
       },
       [](UniqueFd& client) {
         ask(client, 1, kSize, kSize);
         send_once(client, kSize);
         client.reset();
       },
       1},
      {"a last request whose client waits for nothing",
       [exchange](UniqueFd& connection) {
         exchange(connection);
         receive_once(connection, kSize);
         wait_for_end(connection);
         send_once(connection, kSize);
       },
       [](UniqueFd& client) {
         ask(client, 1, kSize, kSize);
         send_once(client, kSize);
         client.reset();
       },
       2},
      {"a client that says goodbye first and is told the time",
       [](UniqueFd& connection) {
         must(read_rest(connection) == 0, "the end");
         send_once(connection, kSize);
       },
       [](UniqueFd& client) {
         must(::shutdown(client.get(), SHUT_WR) == 0, "shutdown");
         receive_once(client, kSize);
       }},
      {"a greeting, a request, a goodbye that is sent",
       [exchange](UniqueFd& connection) {
         send_once(connection, kSize);
         exchange(connection);
         send_once(connection, kSize);
       },
       [](UniqueFd& client) {
         receive_once(client, kSize);
         send_once(client, kSize);
         receive_once(client, 2 * kSize);
       },
       1},
      {"a child reads, its parent answers",
       [](UniqueFd& connection) {
         in_a_child([&] { receive_once(connection, kSize); });
         send_once(connection, kSize);
       },
       [](UniqueFd& client) { ask(client, 1, kSize, kSize); }, 1},
      {"the parent reads, a child answers, and closes last",
       [](UniqueFd& connection) {
         receive_once(connection, kSize);
         in_a_child([&] { send_once(connection, kSize); });
       },
       [](UniqueFd& client) { ask(client, 1, kSize, kSize); }, 1},
      {"the server resets behind its reply",
       [exchange](UniqueFd& connection) {
         exchange(connection);
         must(read_rest(connection) == 0, "the end");
         reset_connection(connection);
       },
       [](UniqueFd& client) {
         ask(client, 1, kSize, kSize);
         must(::shutdown(client.get(), SHUT_WR) == 0, "shutdown");
         wait_for_end(client);
       },
       1},
      {"the server resets in place of a reply",
       [](UniqueFd& connection) {
         receive_once(connection, kSize);
         reset_connection(connection);
       },
       [](UniqueFd& client) {
         send_once(client, kSize);
         wait_for_end(client);
       },
       0, 1},
      {"both have said goodbye before the reply",
       [](UniqueFd& connection) {
         receive_once(connection, kSize);
         wait_for_end(connection);
         must(::shutdown(connection.get(), SHUT_WR) == 0, "shutdown");
         must(::send(connection.get(), "0123456789", kSize, MSG_NOSIGNAL) < 0, "a send behind a goodbye");
       },
       [](UniqueFd& client) {
         send_once(client, kSize);
         must(::shutdown(client.get(), SHUT_WR) == 0, "shutdown");
         wait_for_end(client);
       },
       0, 1},
  };
}

}  // namespace

TEST_CASE("wherever a connection ends, each request is answered or unanswered, once") {
  for (const Life& life : lives()) {
    CAPTURE(life.name);
    const Watched where;
    Child server(where.directory(), [&life](Line& parent) {
      const UniqueFd listener = listen_tcp();
      parent.tell(port_of(listener));
      for (int i = 0; i < kConnections; ++i) {
        if (life.late) {
          (void)parent.hear();
        }
        UniqueFd connection = accept_from(listener);
        life.serve(connection);
      }
      parent.tell();
      (void)parent.hear();
    });
    const auto port = static_cast<std::uint16_t>(server.hear());
    for (int i = 0; i < kConnections; ++i) {
      UniqueFd client = connect_tcp(port);
      life.ask(client);
      if (life.late) {
        server.tell();
      }
    }
    (void)server.hear();
    CHECK(shared().wait_for([&] { return where.value("tacho_connections_active", {{"role", "server"}}) == 0; }));
    CHECK(where.value("tacho_requests_total") == kConnections * life.requests);
    CHECK(where.value("tacho_requests_unanswered_total") == kConnections * life.unanswered);
    CHECK(where.value("tacho_requests_in_flight") == 0);
    CHECK(where.value("tacho_unseen_replies_total") == 0);
    CHECK(where.value("tacho_oneway_messages_total") == 0);
    server.tell();
    server.finish();
  }
}
