// Several requests in one read: turns count one, and the condition says so. What is one request raises nothing.

#include <sys/socket.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "kernel/support/child.h"
#include "kernel/support/habits.h"
#include "kernel/support/records.h"
#include "kernel/support/running.h"
#include "kernel/support/wire.h"

using tacho::UniqueFd;
using namespace tacho::kernel_test;
using namespace std::chrono_literals;
using namespace std::string_literals;

namespace {

constexpr std::size_t kReply = 100;

const std::string kGet = "GET /page HTTP/1.1\r\nHost: a\r\n\r\n";
const std::string kQuery =
    "POST /?query HTTP/1.1\r\nHost: a\r\nContent-Length: 43\r\n\r\nSELECT a\nFROM b\nJOIN c\nWITH d\nLIKE e\n";

std::string post(const std::string& body) {
  return "POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

/// A message of PostgreSQL: type, length with itself, body.
std::string message_of(char type, const std::string& body) {
  return type + std::string(3, '\0') + static_cast<char>(4 + body.size()) + body;
}

const std::string kSync = message_of('S', "");

/// Bind of the unnamed statement to these values, as text.
std::string bind(const std::vector<std::string>& values) {
  std::string body("\0\0\0\0\0", 5);
  body += static_cast<char>(values.size());
  for (const std::string& value : values) {
    body += std::string(3, '\0') + static_cast<char>(value.size()) + value;
  }
  return message_of('B', body + std::string(2, '\0'));
}

std::vector<Habit> in_the_clear() {
  const std::string set = "*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1\r\n1\r\n";
  const std::string get = "*2\r\n$3\r\nGET\r\n$1\r\na\r\n";
  const std::string mail = "MAIL FROM:<a@b.c>\r\nRCPT TO:<d@e.f>\r\nDATA\r\n";
  const Turn ask{kGet};
  return {
      {"one read a connection, of ten requests", {{times(10, kGet)}}, true},
      {"a beginning without any, then some", {ask, ask, {times(5, kGet)}, {times(5, kGet)}, {times(5, kGet)}}, true},
      {"different commands that begin like each other but for a number", {{set + get}}, true},
      {"commands with tags", {{"a001 NOOP\r\na002 NOOP\r\n"}}, true},
      {"different commands, a line each", {{"EHLO x\r\n"}, {mail}, {"a line\r\n.\r\n"}, {"QUIT\r\n"}}, true},
      {"several that begin differently", {{"select a\ninsert b\n"}, {"{\"get\":1}\n[2,3,4,5]\n"}}, false},
      {"different methods", {{kGet + "HEAD / HTTP/1.1\r\n\r\n"}}, true},
      {"different commands of small letters", {{"get a\r\nset b 0 0 1\r\nx\r\nincr c 1\r\n"}}, true},
      {"short ones", {{"mg a v\r\nms b 1\r\nx\r\n"}, {"delete a\r\nmn\r\n"}}, true},
      {"what one of them stores looks like others", {{"set a 0 0 14\r\nget b\r\nincr c\r\n"}}, false},
      {"a command of many words", {{"get a set incr\r\n"}, {"mg get set incr\r\n"}}, false},
      {"a text of several lines", {{"get on\r\nsettle down\r\naddress: here\r\n"}}, false},
      {"one by one", {ask, ask, ask}, false},
      {"a command of several words", {{set}, {get}}, false},
      {"mail, one by one",
       {{"EHLO x\r\n"}, {"MAIL FROM:<a@b.c>\r\n"}, {"DATA\r\n"}, {"NEWS for you\r\nMORE of it\r\n.\r\n"}},
       false},
      {"a mail with fields of one name",
       {{"Received: from a by b\r\nReceived: from c by d\r\n\r\nIt is.\r\n.\r\n"}},
       false},
      {"behind a proxy's header, version 2",
       {{"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c"s + std::string(12, 'a') + kGet}},
       false},
      {"texts with a colon", {{"key:1\nkey:2\nkey:3\n"}}, true},
      {"a body of lines that begin with capitals", {{kQuery}}, false},
      {"a body that names methods",
       {{post(R"({"event":"http","method":"POST","path":"/cart"})")},
        {post(R"({"seen":["GET /a","POST /b"],"office":"POSTAL"})")},
        {post("method=POST&path=/a, POST /b")}},
       false},
      {"several with bodies", {{post(R"({"a":1})") + post(R"({"b":2})")}, {post("a\n") + post("b\n")}}, true},
      {"a text that one of them stores", {{"set a 0 0 11\r\nI set it up\r\n"}}, false},
      {"PostgreSQL's messages of one request, whose values end like them",
       {{bind({"GBP", "5"}) + kSync}, {bind({"GB", "A"}) + kSync}, {bind({"B", "B"}) + kSync}},
       false},
      {"PostgreSQL's messages of two requests", {{bind({"5"}) + kSync + bind({"6"}) + kSync}}, true},
      {"PostgreSQL's simple queries", {{message_of('Q', "SELECT 1\0"s) + message_of('Q', "SELECT 2\0"s)}}, true},
      {"numbers", {{"100 200 300 400 500\n"}, {"2024-01-01 1999-12-31\n"}}, false},
  };
}

/// A length in two bytes in front, as DNS has it.
std::string short_number(char value) {
  return std::string(1, '\0') + value;
}

/// Requests that are read one by one and answered later, and single ones that look a little like that.
std::vector<Habit> read_by_themselves() {
  const std::string body(13, 'b');
  const std::string question = "\1\0\0\1\0\0\0\0\0\0\3www\0\0\1\0\1"s;  // of DNS, behind its number
  const std::string head = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 40\r\n\r\n";
  const std::string chunk = "3e8\r\n" + std::string(1000, 'x') + "\r\n";
  const auto numbered = [](char id) { return number(id) + std::string(20, 'q'); };
  std::vector<Turn> now_and_then(2400, Turn{kGet});
  for (std::size_t i = 11; i < now_and_then.size(); i += 12) {
    now_and_then[i] = {kGet, kGet};
  }
  const std::vector<Turn> once(now_and_then.begin(), now_and_then.begin() + 23);
  return {
      {"a length and a body each", {{number(13), body, number(13), body}}, true},
      {"lengths of two bytes, and bodies that do not begin alike",
       {{short_number(21), "\x1f\xa3" + question, short_number(28), "\x7c\x18" + question + "another"}},
       true},
      {"messages of their length, each in one read",
       {{short_number(21) + "\x1f\xa3" + question, short_number(28) + "\x7c\x18" + question + "another"}},
       true},
      {"lengths of four bytes, and bodies that do not begin alike",
       {{number(21), "\x1f\xa3" + question, number(28), "\x7c\x18" + question + "another"}},
       true},
      {"a length of two bytes, and a body in pieces", {{short_number(38), question, question}}, false},
      {"a length of two bytes, and a body", {{short_number(19), question}}, false},
      {"a length, and a body that begins like it", {{number(13), number(13) + "123456789"}}, false},
      {"fields of one request", {{number(40), "x", number(5), number(6), std::string(27, 'y')}}, false},
      {"numbered ones", {{numbered(1), numbered(2), numbered(3)}}, true, true},
      {"two at a time", {{numbered(1), numbered(2)}, {numbered(3), numbered(4)}}, true, true},
      {"texts", {{R"({"id":1,"do":"a"})", R"({"id":22,"do":"bb"})"}}, true, true},
      {"different methods", {{kGet, head}}, true, true},
      {"two at a time now and then, on one connection", now_and_then, true, true, 1},
      {"two at a time once", once, false, true},
      {"texts that begin differently", {{R"({"get":1234567890})", R"([1,2,3,4,5,6,7,8,9])"}}, false, true},
      {"head and body", {{head, std::string(40, 'b')}, {numbered(1), std::string(24, 'b')}}, false, true},
      {"chunks of an upload", {{head}, {chunk, chunk, chunk, "0\r\n\r\n"}}, false, true},
      {"short chunks", {{head}, {"5\r\nhello\r\n", "5\r\nhello\r\n", "0\r\n\r\n"}}, false, true},
  };
}

std::string data(std::size_t size) {
  return record(23, std::string(size, 'x'));
}

/// As libraries read that ask for a record's header first.
Turn by_records(const std::vector<std::size_t>& sizes) {
  Turn pieces;
  for (const std::size_t size : sizes) {
    pieces.push_back(data(size).substr(0, 5));
    pieces.push_back(data(size).substr(5));
  }
  return pieces;
}

std::vector<Habit> under_tls() {
  const std::string flight = kChangeCipherSpec + kFinished;
  const Turn ask{data(120)};
  std::vector<Habit> habits{
      {"ten records in one read", {{times(10, data(120))}}, true},
      {"ten records, each read by itself", {by_records(std::vector<std::size_t>(10, 120))}, true},
      {"requests of different lengths", {by_records({120, 90, 130, 150})}, true},
      {"a beginning without any, then some", {ask, ask, {times(5, data(90))}, {times(5, data(90))}}, true},
      {"one by one", {ask, ask, ask}, false},
      {"head and body apart", {{data(300) + data(200)}, by_records({300, 200})}, false},
      {"a large body",
       {{data(300) + data(16401) + data(16401) + data(16401) + data(900)}, by_records({300, 16401, 16401, 16401, 900})},
       false},
      {"a body whose records grow", {{data(300) + data(1203) + data(2389) + data(3575)}}, false},
      {"a body in small parts, whose lengths have records of their own",
       {{data(300) + data(20) + data(117) + data(19) + data(20) + data(117) + data(19) + data(22)}},
       false},
  };
  habits.push_back({"each read as it comes, before the first is answered", {Turn(5, data(120))}, false, true});
  for (Habit& habit : habits) {
    habit.turns.insert(habit.turns.begin(), {{kHello}, {flight}});
  }
  return habits;
}

}  // namespace

TEST_CASE("several requests in one read are told, on a connection's first one, too; what is one request is not") {
  for (const Habit& habit : in_the_clear()) {
    check_habit(habit);
  }
}

TEST_CASE("several requests that are read one by one before the first is answered are told, parts of one are not") {
  for (const Habit& habit : read_by_themselves()) {
    check_habit(habit);
  }
}

TEST_CASE("several records alike at once are told under TLS, the records of one request are not") {
  for (const Habit& habit : under_tls()) {
    check_habit(habit);
  }
}

TEST_CASE("a slow request whose reply comes behind those of later ones is told, however rare it is") {
  struct Life {
    std::string name;
    bool late;          ///< the reply to the slow one comes by itself, later on
    std::size_t reply;  ///< of every other one
    bool told;
  };
  const auto life = GENERATE(values<Life>({{"a late reply", true, kReply, true},
                                           {"one request in two pieces", false, kReply, false},
                                           {"a large reply that is sent bit by bit", true, 4096, false}}));
  CAPTURE(life.name);
  static constexpr int kRounds = 5;
  static constexpr int kRequests = 20;
  const std::string request = number(1) + std::string(20, 'q');
  const Watched where;
  Child server(where.directory(), [&](Line& parent) {
    const UniqueFd listener = listen_tcp();
    parent.tell(port_of(listener));
    const UniqueFd connection = accept_from(listener);
    for (int i = 0; i < kRounds * kRequests; ++i) {
      receive_once(connection, request.size());
      if (i % kRequests == 3) {
        parent.tell();
        continue;  // this one takes long
      }
      send_once(connection, life.reply);
      if (life.late && i % kRequests == 15) {
        std::this_thread::sleep_for(3ms);
        send_once(connection, kReply);
      }
    }
    parent.tell();
    (void)parent.hear();
  });
  const UniqueFd client = connect_tcp(static_cast<std::uint16_t>(server.hear()));
  for (int i = 0; i < kRounds * kRequests; ++i) {
    // Slower than turns are left out (LOOK_PAUSE_NS): each is examined.
    std::this_thread::sleep_for(3ms);
    send_bytes(client, request);
    if (i % kRequests == 3) {
      (void)server.hear();
      continue;
    }
    receive_once(client, life.reply + (life.late && i % kRequests == 15 ? kReply : 0));
  }
  (void)server.hear();
  // Conditions need two samples, which are taken once a second.
  CHECK(shared().wait_for([&] { return where.value("tacho_target_condition", {{"condition", "no_poll"}}) == 1; }));
  const auto multiplexed = [&] { return where.value("tacho_target_condition", {{"condition", "multiplexed"}}); };
  if (life.told) {
    CHECK(shared().wait_for([&] { return multiplexed() == 1; }));
  } else {
    CHECK(multiplexed() == 0);
  }
  server.tell();
  server.finish();
}

TEST_CASE("on a busy target turns are looked at now and then, wherever they are in their connections") {
  constexpr int kLong = 2000;
  const Watched where;
  // One turn in three brings several requests; so do none of the first hundred.
  const auto brings = [](int i) { return i >= 100 && i % 3 == 0 ? times(3, kGet) : kGet; };
  Child server(where.directory(), [&brings](Line& parent) {
    const UniqueFd listener = listen_tcp();
    parent.tell(port_of(listener));
    const UniqueFd connection = accept_from(listener);
    for (int i = 0; i < kLong; ++i) {
      receive_once(connection, brings(i).size());
      send_once(connection, kReply);
    }
    parent.tell();
    (void)parent.hear();
  });
  const UniqueFd client = connect_tcp(static_cast<std::uint16_t>(server.hear()));
  for (int i = 0; i < kLong; ++i) {
    const std::string data = brings(i);
    send_bytes(client, data);
    receive_once(client, kReply);
  }
  (void)server.hear();
  CHECK(where.value("tacho_requests_total") == kLong);
  CHECK(shared().wait_for([&] { return where.value("tacho_target_condition", {{"condition", "multiplexed"}}) == 1; }));
  server.tell();
  server.finish();
}
