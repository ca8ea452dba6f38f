// Servers that send unasked: what their clients say in between is no request, what they ask is.

#include <sys/socket.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <string_view>
#include <thread>

#include "kernel/support/child.h"
#include "kernel/support/running.h"
#include "kernel/support/server.h"
#include "kernel/support/wire.h"

using tacho::UniqueFd;
using namespace tacho::kernel_test;
using namespace std::chrono_literals;

namespace {

constexpr auto kGap = 20ms;
constexpr std::size_t kPiece = 100;

/// So many pieces of a stream, each after a pause.
/// Whether something took this process so much longer that times are not what they were meant to be.
bool was_late = false;

void note_lateness(std::chrono::steady_clock::time_point meant) {
  was_late |= std::chrono::steady_clock::now() - meant > kGap / 4;
}

void sleep(std::chrono::milliseconds time) {
  const auto end = std::chrono::steady_clock::now() + time;
  std::this_thread::sleep_until(end);
  note_lateness(end);
}

void push(const UniqueFd& connection, int pieces) {
  for (int i = 0; i < pieces; ++i) {
    sleep(kGap);
    send_once(connection, kPiece);
  }
}

/// Somewhere between two pieces the client says something, as it is told to; the stream goes on all the same.
void take_word(const UniqueFd& connection, const Line& parent, std::size_t size) {
  sleep(kGap / 2);
  const auto told = std::chrono::steady_clock::now();
  parent.tell();
  receive_once(connection, size);
  note_lateness(told);
}

}  // namespace

namespace {

constexpr int kWords = 12;
constexpr int kQuestions = 3;

/// A stream of so many pieces, and words and questions within it. @return whether the server kept its times
bool speak_within_stream(const Watched& where, int first) {
  constexpr std::size_t kWord = 40;
  const Shared<bool> late;
  Child server = server_that(where.directory(), [&](const UniqueFd& connection, Line& parent) {
    serve(connection, 1, 70, 10);
    push(connection, first);
    for (int i = 0; i < kWords; ++i) {
      take_word(connection, parent, kWord);
      sleep(kGap / 2);
      send_once(connection, kPiece);
      push(connection, 2);
    }
    for (int i = 0; i < kQuestions; ++i) {
      take_word(connection, parent, 14);
      const auto asked = std::chrono::steady_clock::now();
      send_once(connection, 7);
      note_lateness(asked);
      push(connection, 2);
    }
    *late = was_late;
  });
  const UniqueFd client = connect_to(server);
  ask(client, 1, 70, 10);
  for (int i = 0; i < kWords + kQuestions; ++i) {
    (void)server.hear();
    send_once(client, i < kWords ? kWord : 14);
  }
  (void)server.hear();
  const bool in_time = !*late;
  if (in_time) {
    CHECK(where.value("tacho_requests_in_flight") == 0);
  }
  close_connection(server);
  finish(server);
  return in_time;
}

}  // namespace

TEST_CASE("acknowledgements within a stream are messages, once it is known for one; what is answered at once counts") {
  // A stream is known by sixteen.
  const int first = GENERATE(15, 16, 24);
  CAPTURE(first);
  const int until_known = first < 16 ? kWords : 3;  // words that are taken for requests
  // It is the times that tell: a server that waited for a CPU is another one.
  constexpr int kTries = 15;
  for (int tries = 1;; ++tries) {
    const Watched where;
    if (!speak_within_stream(where, first) && tries < kTries) {
      continue;
    }
    CHECK(where.value("tacho_requests_total") == 1 + until_known + kQuestions);
    CHECK(where.value("tacho_oneway_messages_total") == kWords - until_known);
    CHECK(where.value("tacho_requests_unanswered_total") == 0);
    CHECK(where.observations("tacho_request_duration_seconds") == 1 + until_known + kQuestions);
    break;
  }
}

TEST_CASE("what is sent unasked while a request is open is taken for its reply") {
  static constexpr int kRequests = 5;
  static constexpr auto kWork = 100ms;
  const Watched where;
  Child server = server_that(where.directory(), [](const UniqueFd& connection, Line&) {
    for (int i = 0; i < kRequests; ++i) {
      receive_once(connection, 80);
      push(connection, 1);
      std::this_thread::sleep_for(kWork);
      send_once(connection, 10);
    }
  });
  const UniqueFd client = connect_to(server);
  for (int i = 0; i < kRequests; ++i) {
    send_once(client, 80);
    receive_once(client, kPiece);
    receive_once(client, 10);
  }
  (void)server.hear();
  CHECK(where.value("tacho_requests_total") == kRequests);
  CHECK(where.sum("tacho_request_duration_seconds") < kRequests * std::chrono::duration<double>(kWork).count());
  close_connection(server);
  const double replies = kRequests * std::chrono::duration<double>(kWork).count();
  CHECK(shared().wait_for([&] { return where.sum("tacho_request_reply_seconds") >= replies; }));
  finish(server);
}

TEST_CASE("requests whose replies are streams are requests, however alike the times are") {
  constexpr int kRequests = 7;
  constexpr int kPieces = 8;
  // A request right behind the last piece; a long one that comes later, and waits as long as pieces do.
  const bool later = GENERATE(false, true);
  CAPTURE(later);
  const std::size_t size = later ? 100 : 40;
  const Watched where;
  Child server = server_that(where.directory(), [size](const UniqueFd& connection, Line&) {
    for (int i = 0; i < kRequests; ++i) {
      receive_once(connection, size);
      push(connection, kPieces);
    }
  });
  const UniqueFd client = connect_to(server);
  for (int i = 0; i < kRequests; ++i) {
    if (later) {
      std::this_thread::sleep_for(kGap);
    }
    send_once(client, size);
    receive_once(client, kPieces * kPiece);
  }
  (void)server.hear();
  CHECK(where.value("tacho_requests_total") == kRequests);
  CHECK(where.value("tacho_oneway_messages_total") == 0);
  CHECK(where.sum("tacho_request_duration_seconds") >= kRequests * 0.02 * 0.99);
  close_connection(server);
  finish(server);
}

namespace {

/// So many requests with this text, each half a gap after the reply to the one before, which comes in so many pieces.
void check_slow_pieces(std::string_view text, int requests, int pieces) {
  const Watched where;
  Child server = server_that(where.directory(), [&](const UniqueFd& connection, Line&) {
    for (int i = 0; i < requests; ++i) {
      receive_once(connection, text.size());
      push(connection, pieces);
    }
  });
  const UniqueFd client = connect_to(server);
  for (int i = 0; i < requests; ++i) {
    std::this_thread::sleep_for(kGap / 2);
    send_bytes(client, text);
    receive_once(client, static_cast<std::size_t>(pieces) * kPiece);
  }
  (void)server.hear();
  CHECK(where.value("tacho_requests_total") == requests);
  CHECK(where.value("tacho_oneway_messages_total") == 0);
  close_connection(server);
  finish(server);
}

}  // namespace

// A busy event loop sends a reply of some pieces in as many rounds, and needs one more for the first of them.
TEST_CASE("short requests whose replies come in a few slow pieces are requests, however late client and server are") {
  check_slow_pieces("some short request", 25, 4);
}

TEST_CASE("short requests of HTTP are requests, if their replies are streams, too") {
  check_slow_pieces("GET /log HTTP/1.1\r\nHost: a\r\n\r\n", 9, 20);
}

namespace {

constexpr auto kPause = 2ms;     // between pieces
constexpr auto kAnswer = 5ms;    // until the first of them: longer than an eighth of the pause
constexpr auto kSilence = 60ms;  // before the next request: more than eight times as long
constexpr int kBuffer = 8192;

}  // namespace

// A database that finds row after row, asked now and then: what it was asked ends its silence.
TEST_CASE("short requests whose replies are streams are requests, if they are answered soon after a silence") {
  constexpr int kRequests = 9;
  constexpr int kPieces = 20;
  constexpr std::size_t kQuery = 30;
  const Watched where;
  Child server = server_that(where.directory(), [](const UniqueFd& connection, Line&) {
    for (int i = 0; i < kRequests; ++i) {
      receive_once(connection, kQuery);
      std::this_thread::sleep_for(kAnswer);
      for (int piece = 0; piece < kPieces; ++piece) {
        send_once(connection, kPiece);
        std::this_thread::sleep_for(kPause);
      }
    }
  });
  const UniqueFd client = connect_to(server);
  for (int i = 0; i < kRequests; ++i) {
    std::this_thread::sleep_for(kSilence);
    send_once(client, kQuery);
    receive_once(client, kPieces * kPiece);
  }
  (void)server.hear();
  CHECK(where.value("tacho_requests_total") == kRequests);
  CHECK(where.value("tacho_oneway_messages_total") == 0);
  CHECK(where.sum("tacho_request_duration_seconds") >= kRequests * 0.005);
  close_connection(server);
  finish(server);
}

namespace {

/// Short questions, each of which takes longer than the pauses between the pieces of the reply before the first of
/// them.
/// @param rounds of such a reply and so many questions
void check_questions_behind(std::size_t piece, int rounds, int questions) {
  constexpr int kPieces = 24;
  constexpr std::size_t kQuery = 30;
  constexpr std::size_t kRow = 200;
  const Watched where;
  Child server = server_that(where.directory(), [=](const UniqueFd& connection, Line&) {
    for (int i = 0; i < rounds * (1 + questions); ++i) {
      receive_once(connection, kQuery);
      std::this_thread::sleep_for(kAnswer);
      const bool slow = i % (1 + questions) == 0;
      for (int sent = 0; sent < (slow ? kPieces : 1); ++sent) {
        send_once(connection, slow ? piece : kRow);
        std::this_thread::sleep_for(slow ? kPause : 0ms);
      }
    }
  });
  const UniqueFd client = connect_to(server);
  for (int i = 0; i < rounds * (1 + questions); ++i) {
    std::this_thread::sleep_for(kPause);
    send_once(client, kQuery);
    receive_once(client, i % (1 + questions) == 0 ? kPieces * piece : kRow);
  }
  (void)server.hear();
  CHECK(where.value("tacho_requests_total") == rounds * (1 + questions));
  CHECK(where.value("tacho_oneway_messages_total") == 0);
  CHECK(where.value("tacho_requests_in_flight") == 0);
  CHECK(where.observations("tacho_request_duration_seconds") == rounds * (1 + questions));
  close_connection(server);
  finish(server);
}

}  // namespace

// A pooled connection to a database, over which somebody exports a table; a chat, whose answers come word by word.
TEST_CASE("short questions behind a reply that looks like a stream are requests") {
  SECTION("once") {
    check_questions_behind(kPiece, 1, 60);
  }
  SECTION("again and again") {
    check_questions_behind(kPiece, 9, 8);
    check_questions_behind(kPiece, 9, 1);
  }
}

TEST_CASE("questions whose replies come in slow pieces that fill a buffer are requests") {
  check_questions_behind(8192, 12, 0);
}

// It could send sooner, but for the client, which reads slowly.
TEST_CASE("a reply that waits for its reader is no stream, however many pieces it has") {
  constexpr int kRequests = 9;
  constexpr int kPieces = 40;
  constexpr std::size_t kQuery = 30;
  constexpr std::size_t kLargePiece = 8192;
  const Watched where;
  Child server = server_that(where.directory(), [](const UniqueFd& connection, Line&) {
    CHECK(::setsockopt(connection.get(), SOL_SOCKET, SO_SNDBUF, &kBuffer, sizeof(kBuffer)) == 0);
    for (int i = 0; i < kRequests; ++i) {
      receive_once(connection, kQuery);
      std::this_thread::sleep_for(kGap / 2);
      for (int piece = 0; piece < kPieces; ++piece) {
        send_once(connection, kLargePiece);
      }
    }
  });
  const UniqueFd client = connect_to(server);
  CHECK(::setsockopt(client.get(), SOL_SOCKET, SO_RCVBUF, &kBuffer, sizeof(kBuffer)) == 0);
  for (int i = 0; i < kRequests; ++i) {
    std::this_thread::sleep_for(kGap / 2);
    send_once(client, kQuery);
    for (int piece = 0; piece < kPieces; ++piece) {
      std::this_thread::sleep_for(kGap / 10);
      receive_once(client, kLargePiece);
    }
  }
  (void)server.hear();
  CHECK(where.value("tacho_requests_total") == kRequests);
  CHECK(where.value("tacho_oneway_messages_total") == 0);
  close_connection(server);
  finish(server);
}
