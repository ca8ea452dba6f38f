// Several requests in one read of protocols that tell where a message ends, or name its method. What is one raises
// nothing.

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "kernel/support/habits.h"

using namespace tacho::kernel_test;
using namespace std::string_literals;

namespace {

/// Of SIP (RFC 3261) and RTSP (RFC 2326), with what follows on their fields.
std::string session(const std::string& method, const std::string& body = {}) {
  return method + " sip:a@b SIP/2.0\r\nCSeq: 1 " + method + "\r\nContent-Length: " + std::to_string(body.size()) +
         "\r\n\r\n" + body;
}

std::vector<Habit> of_sessions() {
  const std::string offer = "v=0\r\no=- 1 1 IN IP4 1.2.3.4\r\nm=audio 5004 RTP/AVP 0\r\n";
  return {
      {"different methods of sessions", {{session("REGISTER") + session("OPTIONS")}}, true},
      {"those of media", {{session("SETUP") + session("PLAY")}, {session("PAUSE") + session("TEARDOWN")}}, true},
      {"each by itself", {{session("SUBSCRIBE"), session("REGISTER")}}, true, true},
      {"one by one, whose method stands in them twice",
       {{session("REGISTER")}, {session("INVITE", offer)}, {session("MESSAGE", "hello")}},
       false},
      {"what is acknowledged, and a request", {{session("ACK") + session("BYE")}, {session("BYE")}}, false},
      {"a text that begins with a method", {{session("MESSAGE", "BYE for now")}}, false},
      {"logs that begin with a method", {{"POST /logs HTTP/1.1\r\nHost: a\r\n\r\nINFO begun\r\n"}}, false},
  };
}

/// A message of Cassandra's protocol: version, flags, number, what it wants, length.
std::string native(char id, char length) {
  return "\4\0\0"s + id + "\7" + number(length) + std::string(static_cast<std::size_t>(length), 'q');
}

/// The same in the frame of version 5, between checksums.
std::string checked(char id, char length) {
  return std::string(1, static_cast<char>(length + 9)) + "\0\2crc"s + native(id, length) + "crc4";
}

/// A message of LDAP (RFC 4511, 4.1.1): its length in so many bytes, its number, and what it wants.
std::string ldap(char id, std::size_t length_bytes, std::size_t length) {
  std::string text = "0";
  if (length_bytes > 1) {
    text += static_cast<char>(0x80 + (length_bytes - 1));
    text += std::string(length_bytes - 2, '\0');
  }
  return text + static_cast<char>(length) + "\2\1" + id + static_cast<char>(0x60 + id) + std::string(length - 4, 'q');
}

/// A message of MongoDB (OP_MSG) of so many bytes: its length, its number, what it answers, its kind, and the rest.
std::string document_message(char id, char length, std::string rest = {}) {
  const std::string zeros(3, '\0');
  rest.resize(static_cast<std::size_t>(length) - 16, 'q');
  return length + zeros + id + zeros + std::string(4, '\0') + "\xdd\7\0\0"s + rest;
}

/// A request of Modbus/TCP: its number, the protocol, how long the rest is, unit, function, and the rest.
std::string modbus(char id, char length) {
  return "\0"s + id + "\0\0\0"s + length + "\1\3" + std::string(static_cast<std::size_t>(length) - 2, '\0');
}

/// Messages that tell their length, which need not begin alike.
std::vector<Habit> in_frames() {
  const auto framed = [](char length) { return number(length) + std::string(static_cast<std::size_t>(length), 'q'); };
  const auto call = [](char length) {
    return "\x80\0\0"s + length + std::string(static_cast<std::size_t>(length), 'q');  // of ONC RPC
  };
  const auto header = [](char id, char length) { return native(id, length).substr(0, 9); };
  const Turn search{ldap(1, 1, 35).substr(0, 8), ldap(1, 1, 35).substr(8)};
  const Turn modify{ldap(6, 1, 50).substr(0, 8), ldap(6, 1, 50).substr(8)};
  return {
      {"two in one read", {{framed(30) + framed(41)}}, true},
      {"many in one read", {{times(9, framed(30) + framed(41))}}, true},
      {"two calls, the last of each of which is marked", {{call(30) + call(50)}}, true},
      {"two with a header in front of the length", {{native(1, 30) + native(2, 50)}}, true},
      {"two between checksums", {{checked(1, 30) + checked(2, 50)}}, true},
      {"each by itself, with a header", {{native(1, 30), native(2, 50)}}, true, true},
      {"each by itself, headers and bodies",
       {{header(1, 30), framed(30).substr(4), header(2, 50), framed(50).substr(4)}},
       true,
       true},
      {"each by itself, between checksums", {{checked(1, 30), checked(2, 50)}}, true, true},
      {"two of LDAP in one read", {{ldap(1, 1, 35) + ldap(6, 1, 50)}}, true},
      {"two of LDAP with long lengths", {{ldap(1, 2, 35) + ldap(6, 3, 50)}, {ldap(1, 5, 35) + ldap(6, 5, 50)}}, true},
      {"each of LDAP by itself", {{ldap(1, 1, 35), ldap(6, 1, 50)}}, true, true},
      {"each of LDAP, heads and the rest", {{search[0], search[1], modify[0], modify[1]}}, true, true},
      {"one of LDAP at a time", {search, modify, {ldap(1, 1, 35)}, {ldap(6, 5, 50)}}, false, true},
      {"two of MongoDB", {{document_message(1, 60) + document_message(2, 75)}}, true},
      {"one of MongoDB with several documents",
       {{document_message(1, 90,
                          "\0\0\0\0\1\x45\0\0\0documents\0"s + "\x1c\0\0\0\2a\0\1\0\0\0"s + std::string(17, 'd') +
                              "\x1d\0\0\0\2a\0\1\0\0\0"s)}},
       false},
      {"two of Modbus", {{modbus(1, 6) + modbus(2, 9)}}, true},
      {"one of Modbus that writes zeros", {{modbus(1, 90)}, {modbus(2, 6)}}, false},
      {"one by one", {{framed(30)}, {call(41)}, {native(1, 30)}, {checked(2, 50)}}, false, true},
      {"a header and its body",
       {{header(1, 30), framed(30).substr(4)}, {header(2, 50), framed(50).substr(4)}},
       false,
       true},
      {"one that holds others", {{number(74) + framed(30) + framed(36)}}, false},
      {"one in pieces", {{native(1, 50).substr(0, 20), native(1, 50).substr(20)}}, false, true},
  };
}

}  // namespace

TEST_CASE("several requests of sessions in one read are told, an acknowledgement and a body are none") {
  for (const Habit& habit : of_sessions()) {
    check_habit(habit);
  }
}

TEST_CASE("several messages that tell their length are told, whether they begin alike or not; parts of one are not") {
  for (const Habit& habit : in_frames()) {
    check_habit(habit);
  }
}
