// Calls of clients that do not wait for an answer before they send the next one.

#include <sys/socket.h>

#include <array>
#include <catch2/catch.hpp>
#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "kernel/support/child.h"
#include "kernel/support/running.h"
#include "kernel/support/wire.h"

using tacho::UniqueFd;
using namespace tacho::kernel_test;
using namespace std::chrono_literals;
using namespace std::string_literals;

namespace {

constexpr int kRounds = 23;

/// Reads as much as one client sends before it reads, and answers that in one send.
struct Dialogue {
  std::size_t asked;
  std::size_t answered;
  int answers = 1;  ///< a round
};

void send_text(const UniqueFd& socket, std::string_view text) {
  must(::send(socket.get(), text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size()), "send");
}

/// A client in a cgroup of its own has so many rounds with a server that nobody watches.
/// @param judge is called when all is done and sampled, before the client goes
void converse(const Dialogue& dialogue, const std::function<void(const UniqueFd&)>& round,
              const std::function<void(const Watched&)>& judge) {
  const Watched where;
  const UniqueFd listener = listen_tcp();
  Child client(where.directory(), [&, port = port_of(listener)](Line& parent) {
    const UniqueFd socket = connect_tcp(port);
    for (int i = 0; i < kRounds; ++i) {
      round(socket);
    }
    parent.tell();
    (void)parent.hear();
  });
  serve(accept_from(listener), kRounds * dialogue.answers, dialogue.asked, dialogue.answered);
  (void)client.hear();
  // Then the sampler has seen all of it.
  const double sends = where.sends();
  REQUIRE(shared().wait_for([&] { return where.value("tacho_observed_rps") > 0 && where.sends() == sends; }));
  judge(where);
  client.tell();
  client.finish();
}

double told(const Watched& where) {
  return where.value("tacho_target_condition", {{"condition", "multiplexed_calls"}});
}

void wait_until_told(const Watched& where) {
  CHECK(shared().wait_for([&] { return told(where) == 1; }));
}

void check_untold(const Watched& where) {
  CHECK(where.value("tacho_dependency_calls_total") == kRounds);
  CHECK(told(where) == 0);
}

// kRounds calls of 100 bytes, two of them open but for the last: one more for each answer, of 50.
template <class Wait>
void keep_two_open(const UniqueFd& socket, const Wait& wait_before_reading) {
  const std::string call(100, 'x');
  send_text(socket, call);
  for (int i = 1; i < kRounds; ++i) {
    send_text(socket, call);
    wait_before_reading();
    receive_once(socket, 50);
  }
  receive_once(socket, 50);
}

}  // namespace

TEST_CASE("a client that sends several calls before it reads has its calls told to be too few") {
  constexpr std::string_view kCall = "*2\r\n$3\r\nGET\r\n$1\r\na\r\n";
  const auto together = GENERATE(values<std::string>({"each by itself", "in one buffer", "a buffer for each"}));
  CAPTURE(together);
  converse(
      {.asked = 3 * kCall.size(), .answered = 30},
      [&](const UniqueFd& socket) {
        if (together == "in one buffer") {
          send_text(socket, std::string(kCall) + std::string(kCall) + std::string(kCall));
        } else if (together == "a buffer for each") {
          send_parts(socket, {"", kCall, kCall.substr(0, 7), kCall.substr(7), kCall});
        } else {
          for (int i = 0; i < 3; ++i) {
            send_text(socket, kCall);
          }
        }
        receive_once(socket, 30);
      },
      wait_until_told);
}

TEST_CASE("a client that sends several messages that tell their length has its calls told, however long they are") {
  const auto framed = [](char length) {
    return "\0\0\0"s + length + std::string(static_cast<std::size_t>(length), 'q');
  };
  const std::string first = framed(30);
  const std::string second = framed(41);
  const auto together = GENERATE(values<std::string>({"each by itself", "in one buffer", "a buffer for each"}));
  CAPTURE(together);
  converse(
      {.asked = first.size() + second.size(), .answered = 30},
      [&](const UniqueFd& socket) {
        if (together == "in one buffer") {
          send_text(socket, first + second);
        } else if (together == "a buffer for each") {
          send_parts(socket, {first, second.substr(0, 10), std::string_view(second).substr(10)});
        } else {
          send_text(socket, first);
          send_text(socket, second);
        }
        receive_once(socket, 30);
      },
      wait_until_told);
}

TEST_CASE("a client that sends while an answer waits unread has its calls told to be too few, whatever it says") {
  // Bytes that all look alike, as encrypted ones do to us: only the times tell.
  const std::string call(100, 'x');
  const auto send_and_let_answer_wait = [&call](const UniqueFd& socket) {
    send_text(socket, call);
    char byte = 0;
    must(::recv(socket.get(), &byte, 1, MSG_PEEK) == 1, "peek");
    std::this_thread::sleep_for(5ms);
  };
  converse(
      {.asked = 100, .answered = 50},
      [&](const UniqueFd& socket) {
        send_and_let_answer_wait(socket);
        receive_once(socket, 50);
      },
      check_untold);
  converse(
      {.asked = 100, .answered = 50, .answers = 2},
      [&](const UniqueFd& socket) {
        send_and_let_answer_wait(socket);
        send_text(socket, call);
        receive_once(socket, 100);
      },
      wait_until_told);
}

TEST_CASE("a client that calls again while an answer waits unread is told, though one call is missing") {
  const Watched where;
  const UniqueFd listener = listen_tcp();
  Child client(where.directory(), [&, port = port_of(listener)](Line& parent) {
    const UniqueFd socket = connect_tcp(port);
    keep_two_open(socket, [&socket] {
      std::array<char, 100> both{};
      must(::recv(socket.get(), both.data(), both.size(), MSG_PEEK | MSG_WAITALL) == 100, "peek");
    });
    parent.tell();
    (void)parent.hear();
  });
  serve(accept_from(listener), kRounds, 100, 50);
  (void)client.hear();
  CHECK(where.value("tacho_dependency_calls_total") == kRounds - 1);
  wait_until_told(where);
  client.tell();
  client.finish();
}

TEST_CASE("a client that always has two calls open, one more for each answer, has one too few and is not told") {
  const Watched where;
  const UniqueFd listener = listen_tcp();
  Child client(where.directory(), [port = port_of(listener)](Line& parent) {
    keep_two_open(connect_tcp(port), [] {});
    parent.tell();
    (void)parent.hear();
  });
  const UniqueFd server = accept_from(listener);
  for (int i = 0; i < kRounds; ++i) {
    // It answers the first when the second is there.
    std::array<char, 200> both{};
    const std::size_t open = i + 1 < kRounds ? 200 : 100;
    must(::recv(server.get(), both.data(), open, MSG_PEEK | MSG_WAITALL) == static_cast<ssize_t>(open), "peek");
    serve(server, 1, 100, 50);
  }
  (void)client.hear();
  const double sends = where.sends();
  REQUIRE(shared().wait_for([&] { return where.value("tacho_observed_rps") > 0 && where.sends() == sends; }));
  CHECK(where.value("tacho_dependency_calls_total") == kRounds - 1);
  CHECK(told(where) == 0);
  client.tell();
  client.finish();
}

TEST_CASE("what a client answers that its server asks are calls, but for the last") {
  const Watched where;
  const UniqueFd listener = listen_tcp();
  Child client(where.directory(), [port = port_of(listener)](Line& parent) {
    serve(connect_tcp(port), kRounds, 10, 20);
    parent.tell();
    (void)parent.hear();
  });
  ask(accept_from(listener), kRounds, 10, 20);
  (void)client.hear();
  CHECK(where.value("tacho_dependency_calls_total") == kRounds - 1);
  CHECK(where.value("tacho_requests_total") == 0);
  client.tell();
  client.finish();
}

TEST_CASE("a call that is sent in pieces is one, and its answer may come in pieces, too") {
  const std::string head = "POST /a HTTP/1.1\r\nContent-Length: 7\r\n\r\n";
  converse(
      {.asked = head.size() + 7, .answered = 30},
      [&](const UniqueFd& socket) {
        send_text(socket, head);
        send_text(socket, "a=b&c=d");
        receive_once(socket, 10);
        receive_once(socket, 20);
      },
      check_untold);
}

TEST_CASE("calls over HTTP/2 are told by its preface, however few there are at a time") {
  constexpr std::string_view kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
  bool first = true;
  converse(
      {.asked = 31, .answered = 30},
      [&](const UniqueFd& socket) {
        std::string text(31, first ? '\0' : 'x');
        if (first) {
          text.replace(0, kPreface.size(), kPreface);
        }
        first = false;
        send_text(socket, text);
        receive_once(socket, 30);
      },
      wait_until_told);
}

TEST_CASE("a call that is answered while it is being sent has not lasted since the one before, or for ever") {
  static constexpr std::size_t kParts = 16;
  static constexpr std::size_t kPart = std::size_t{1} << 20U;
  constexpr auto kIdle = 1200ms;
  const Watched where;
  const UniqueFd listener = listen_tcp();
  const bool first = GENERATE(true, false);
  CAPTURE(first);
  Child client(where.directory(), [port = port_of(listener), first](Line& parent) {
    const UniqueFd connection = connect_tcp(port);
    if (!first) {
      ask(connection, 1, 10, 20);
      (void)parent.hear();
    }
    std::thread writer([&connection] {
      const std::vector<char> all(kParts * kPart);
      must(::send(connection.get(), all.data(), all.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(all.size()), "send");
    });
    receive_once(connection, 20);
    parent.tell();
    writer.join();
    parent.tell();
    (void)parent.hear();
  });
  const UniqueFd server = accept_from(listener);
  if (!first) {
    serve(server, 1, 10, 20);
    std::this_thread::sleep_for(kIdle);
    client.tell();
  }
  receive_once(server, kPart);
  send_once(server, 20);
  (void)client.hear();
  for (std::size_t part = 1; part < kParts; ++part) {
    receive_once(server, kPart);
  }
  (void)client.hear();
  CHECK(where.value("tacho_dependency_calls_total") == (first ? 1 : 2));
  CHECK(where.sum("tacho_dependency_duration_seconds") < 1);
  client.tell();
  client.finish();
}

TEST_CASE("pings of a client over WebSocket are calls, what is pushed to it is none") {
  constexpr int kPings = 7;
  const Watched where;
  const UniqueFd listener = listen_tcp();
  const auto port = port_of(listener);
  // RFC 6455, 5.2: fin and opcode, length (and a mask, from clients).
  const std::string ping = std::string("\x89\x80") + "mask";
  const std::string pong("\x8a\0", 2);
  const std::string push = std::string("\x82\x20") + std::string(32, 'p');
  const std::string upgrade = "GET /chat HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n";
  const std::string switching = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n";
  Child client(where.directory(), [&](Line& parent) {
    const UniqueFd connection = connect_tcp(port);
    send_bytes(connection, upgrade);
    receive_once(connection, switching.size());
    for (int i = 0; i < kPings; ++i) {
      receive_once(connection, push.size());
      send_bytes(connection, ping);
      receive_once(connection, pong.size());
    }
    parent.tell();
    (void)parent.hear();
  });
  const UniqueFd server = accept_from(listener);
  receive_once(server, upgrade.size());
  send_bytes(server, switching);
  for (int i = 0; i < kPings; ++i) {
    send_bytes(server, push);
    receive_once(server, ping.size());
    send_bytes(server, pong);
  }
  (void)client.hear();
  CHECK(where.value("tacho_dependency_calls_total", {{"peer", "127.0.0.1:" + std::to_string(port)}}) == 1 + kPings);
  client.tell();
  client.finish();
}
