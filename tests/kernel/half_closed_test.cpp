// Clients that half-close TLS: they say goodbye within an open call, and then read what answers it.

#include <catch2/catch.hpp>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <string>
#include <thread>
#include <vector>

#include "kernel/support/child.h"
#include "kernel/support/records.h"
#include "kernel/support/running.h"
#include "kernel/support/wire.h"

using tacho::UniqueFd;
using namespace tacho::kernel_test;
using namespace std::chrono_literals;

namespace {

constexpr auto kPause = 40ms;
constexpr double kMargin = 0.02;
constexpr auto kAtOnce = 10ms;

/// What one of both does next, after a pause.
struct Step {
  enum class Kind { asks, answers, reads } kind;
  std::string bytes = {};
  std::size_t size = 0;
  std::chrono::milliseconds pause = 0ms;
};
using Steps = std::vector<Step>;

/// A client sends this, a server does, the client reads so much of that at once.
Step asks(const std::string& bytes, std::chrono::milliseconds pause = 0ms) {
  return {.kind = Step::Kind::asks, .bytes = bytes, .pause = pause};
}
Step answers(const std::string& bytes, std::chrono::milliseconds pause = 0ms) {
  return {.kind = Step::Kind::answers, .bytes = bytes, .pause = pause};
}
Step reads(std::size_t size) {
  return {.kind = Step::Kind::reads, .size = size};
}

Steps operator+(Steps first, const Steps& then) {
  first.insert(first.end(), then.begin(), then.end());
  return first;
}

/// The client reads an answer at once, or the header of its record by itself.
Steps answered(const std::string& bytes, std::chrono::milliseconds pause = 0ms) {
  return {answers(bytes, pause), reads(bytes.size())};
}
Steps answered_in_two(const std::string& bytes) {
  return {answers(bytes), reads(5), reads(bytes.size() - 5)};
}

const std::string kAnswer = record(23, std::string(90, 'a'));
const std::string kTicket = record(23, std::string(250, 't'));
const std::string kEnd = kChangeCipherSpec + kFinished12;
const std::string kShortCcm8 = record(23, std::string(11, 's'));
const std::string kShortAnswer12 = record(23, std::string(19, 'a'));

const Steps kModern = Steps{asks(kHello)} + answered(kServerHello) + Steps{asks(kChangeCipherSpec + kFinished)};
const Steps kGreeted = kModern + answered(kTicket);
const Steps kOlder =
    Steps{asks(kHello)} + answered(kServerHello) + Steps{asks(kKeyExchange + kEnd)} + answered(kTicket12 + kEnd);
const Steps kCall = Steps{asks(kRequest)} + answered(kAnswer);

/// A request, after a pause a goodbye, and after another one what is read.
Steps parted(const std::string& goodbye, const std::string& request = kRequest) {
  return {asks(request), asks(goodbye, kPause)};
}

struct Life {
  std::string name;
  Steps steps;
  int calls = 1;
  double pauses = 2;  ///< that the calls last
  int connections = 1;
};

void live(const Life& life, int tries = 15) {
  CAPTURE(life.name);
  std::chrono::nanoseconds pauses{0};
  for (const Step& step : life.steps) {
    pauses += step.pause;
  }
  const Watched where;
  const Shared<bool> late;
  const UniqueFd listener = listen_tcp();
  const auto port = port_of(listener);
  Child client(where.directory(), [&, port](Line& parent) {
    for (int i = 0; i < life.connections; ++i) {
      const auto begin = std::chrono::steady_clock::now();
      const UniqueFd connection = connect_tcp(port);
      for (const Step& step : life.steps) {
        if (step.kind == Step::Kind::asks) {
          std::this_thread::sleep_for(step.pause);
          send_bytes(connection, step.bytes);
        } else if (step.kind == Step::Kind::reads) {
          receive_once(connection, step.size);
        }
      }
      *late = *late || std::chrono::steady_clock::now() - begin > pauses + kAtOnce;
    }
    parent.tell();
    (void)parent.hear();
  });
  for (int i = 0; i < life.connections; ++i) {
    const UniqueFd server = accept_from(listener);
    for (const Step& step : life.steps) {
      if (step.kind == Step::Kind::asks) {
        receive_once(server, step.bytes.size());
      } else if (step.kind == Step::Kind::answers) {
        std::this_thread::sleep_for(step.pause);
        send_bytes(server, step.bytes);
      }
    }
  }
  (void)client.hear();
  CHECK(where.value("tacho_dependency_calls_total", {{"peer", "127.0.0.1:" + std::to_string(port)}}) ==
        life.calls * life.connections);
  const double lasted = std::chrono::duration<double>(kPause).count() * life.pauses * life.connections;
  const double sum = where.sum("tacho_dependency_duration_seconds");
  if (*late && tries > 1 && std::abs(sum - lasted) > kMargin) {
    // Both waited for a CPU.
    client.tell();
    client.finish();
    live(life, tries - 1);
    return;
  }
  CHECK(sum == Approx(lasted).margin(kMargin));
  if (life.connections > 1) {
    const double sends = where.sends();
    REQUIRE(shared().wait_for([&] { return where.value("tacho_observed_rps") > 0 && where.sends() == sends; }));
    CHECK(where.value("tacho_target_condition", {{"condition", "multiplexed_calls"}}) == 0);
  }
  client.tell();
  client.finish();
}

const Steps kReply = answered(kAnswer, kPause);

}  // namespace

TEST_CASE("what a client reads when it has half-closed TLS answers its call, which begins with its request") {
  live({.name = "TLS 1.3", .steps = kGreeted + parted(kShort) + kReply});
  live({.name = "TLS 1.2", .steps = kOlder + parted(kAlert) + kReply});
  live({.name = "a short tag", .steps = kGreeted + parted(kShortCcm8) + kReply});
  live({.name = "the server says goodbye behind it",
        .steps = kGreeted + parted(kShort) + kReply + answered_in_two(kShort)});
  live({.name = "one read has both", .steps = kGreeted + parted(kShort) + answered(kAnswer + kShort, kPause)});
  live({.name = "TLS 1.2, one read has both", .steps = kOlder + parted(kAlert) + answered(kAnswer + kAlert, kPause)});
  live({.name = "later calls", .steps = kGreeted + kCall + kCall + parted(kShort) + kReply, .calls = 3});
  live({.name = "TLS 1.2, later calls", .steps = kOlder + kCall + kCall + parted(kAlert) + kReply, .calls = 3});
  live({.name = "a short request", .steps = kGreeted + parted(kShort, kShort) + kReply});
  live({.name = "a request as short as Java's goodbye", .steps = kGreeted + parted(kShort, kPadded) + kReply});
  live({.name = "Java's", .steps = kGreeted + parted(kPadded) + Steps{asks(kPadded)} + kReply});
  live({.name = "Java's at once", .steps = kGreeted + parted(kPadded + kPadded) + kReply});
  live({.name = "a connection that was there before", .steps = parted(kShort) + kReply});
  live({.name = "a connection of TLS 1.2 that was there before", .steps = parted(kAlert) + kReply});
}

TEST_CASE("a call that comes with the end of the handshake is answered, too, when its client has half-closed TLS") {
  live({.name = "behind the last flight", .steps = kModern + parted(kShort) + kReply});
  live({.name = "with the last flight",
        .steps = Steps{asks(kHello)} + answered(kServerHello) + parted(kShort, kFinished + kRequest) + kReply});
  live({.name = "tickets come together",
        .steps = kModern + parted(kShort) + answered(kTicket + kTicket, kPause) + answered(kAnswer),
        .pauses = 2});
  live({.name = "a ticket ends it",
        .steps = kModern + parted(kShort) + answered(kTicket, kPause) + answered(kAnswer, kPause)});
  live({.name = "False Start",
        .steps = Steps{asks(kHello)} + answered(kServerHello) + Steps{asks(kKeyExchange + kEnd)} + parted(kAlert) +
                 answered(kTicket12 + kEnd) + kReply});
  live({.name = "False Start, with the last flight",
        .steps = Steps{asks(kHello)} + answered(kServerHello) + parted(kAlert, kKeyExchange + kEnd + kRequest) +
                 answered(kTicket12 + kEnd) + kReply});
}

TEST_CASE("a call whose client has half-closed TLS is not answered by the server's goodbye") {
  const auto no_answer = [](const std::string& name, const Steps& steps, int calls = 0) {
    live({.name = name, .steps = steps, .calls = calls, .pauses = 0});
  };
  no_answer("nothing comes", kGreeted + parted(kShort));
  no_answer("TLS 1.2, nothing comes", kOlder + parted(kAlert));
  no_answer("TLS 1.3", kGreeted + parted(kShort) + answered(kShort));
  no_answer("a header is read by itself", kGreeted + parted(kShort) + answered_in_two(kShort));
  no_answer("TLS 1.2", kOlder + parted(kAlert) + answered(kAlert));
  no_answer("TLS 1.2, a header is read by itself", kOlder + parted(kAlert) + answered_in_two(kAlert));
  no_answer("TLS 1.2, behind many calls",
            kOlder + kCall + kCall + kCall + kCall + kCall + kCall + parted(kAlert) + answered(kAlert), 6);
  no_answer("Java's", kGreeted + parted(kPadded) + Steps{asks(kPadded)} + answered(kPadded) + answered(kPadded));
  no_answer("Java's at once", kGreeted + parted(kShort) + answered(kPadded + kPadded));
  no_answer("False Start", Steps{asks(kHello)} + answered(kServerHello) + Steps{asks(kKeyExchange + kEnd)} +
                               parted(kAlert) + answered(kTicket12 + kEnd) + answered(kAlert));
}

TEST_CASE("a short answer to a call whose client has half-closed TLS counts if the server's goodbye is behind it") {
  live({.name = "one by one", .steps = kGreeted + parted(kShort) + answered(kShort, kPause) + answered(kShort)});
  live({.name = "headers are read by themselves",
        .steps = kGreeted + parted(kShort) +
                 Steps{answers(kShort + kShort, kPause), reads(5), reads(19), reads(5), reads(19)}});
  live({.name = "at once", .steps = kGreeted + parted(kShort) + answered(kShort + kShort, kPause)});
  live({.name = "TLS 1.2, where a goodbye shows its type",
        .steps = kOlder + parted(kAlert) + answered(kShortAnswer12, kPause)});
}

TEST_CASE("what is as short as a goodbye within an open call is a message if it is answered alike and more is sent") {
  // MQTT: nothing answers what is published with quality 0, nor a ping but its pong.
  live({.name = "a ping",
        .steps = kGreeted + parted(kShort) + answered(kShort, kPause) + kCall + parted(kShort) +
                 answered(kShort, kPause) + kCall,
        .calls = 4});
  live({.name = "a ping and a longer answer", .steps = kGreeted + parted(kShort) + kReply + kCall, .calls = 2});
  live({.name = "more of a call", .steps = kGreeted + parted(kShort) + Steps{asks(kRequest)} + kReply, .pauses = 1});
  live({.name = "as long as one of Java's", .steps = kGreeted + parted(kPadded) + kReply, .pauses = 1});
}

TEST_CASE("the goodbye of a client that has got its answer is no call, in one piece, neither") {
  live({.name = "Java's", .steps = kGreeted + kCall + Steps{asks(kPadded + kPadded)} + answered(kShort), .pauses = 0});
}

TEST_CASE("a goodbye within a call is no other call, though the answer waits unread") {
  live({.name = "TLS 1.3",
        .steps = kGreeted + kCall + kCall +
                 Steps{asks(kRequest), answers(kAnswer), asks(kShort, kPause), reads(kAnswer.size())},
        .calls = 3,
        .pauses = 0,
        .connections = 3});
}
