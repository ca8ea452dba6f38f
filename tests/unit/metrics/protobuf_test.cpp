#include "metrics/protobuf.h"

#include <catch2/catch.hpp>
#include <limits>
#include <string>

namespace tacho::metrics {
namespace {

using namespace std::string_literals;

std::string varint(std::uint64_t value) {
  std::string out;
  append_varint(out, value);
  return out;
}

template <class Write>
std::string fields(Write write) {
  std::string out = "before";
  Protobuf message(out);
  write(message);
  return out.substr(6);
}

TEST_CASE("integers take as many bytes as they need") {
  CHECK(varint(0) == "\0"s);
  CHECK(varint(127) == "\x7f");
  CHECK(varint(128) == "\x80\x01");
  CHECK(varint(300) == "\xac\x02");
  CHECK(varint(16'383) == "\xff\x7f");
  CHECK(varint(16'384) == "\x80\x80\x01");
  CHECK(varint(std::numeric_limits<std::uint64_t>::max()) == "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01");
}

TEST_CASE("signed integers near zero are short") {
  CHECK(zigzag(0) == 0);
  CHECK(zigzag(-1) == 1);
  CHECK(zigzag(1) == 2);
  CHECK(zigzag(-320) == 639);
  CHECK(zigzag(std::numeric_limits<std::int64_t>::max()) == ~std::uint64_t{1});
  CHECK(zigzag(std::numeric_limits<std::int64_t>::min()) == ~std::uint64_t{0});
}

TEST_CASE("fields stand behind their number and kind") {
  CHECK(fields([](Protobuf& p) { p.integer(7, 150); }) == "\x38\x96\x01");
  CHECK(fields([](Protobuf& p) { p.signed_integer(5, -2); }) == "\x28\x03");
  CHECK(fields([](Protobuf& p) { p.real(1, 1.0); }) == "\x09\0\0\0\0\0\0\xf0\x3f"s);
  CHECK(fields([](Protobuf& p) { p.text(2, "testing"); }) == "\x12\x07testing");
  CHECK(fields([](Protobuf& p) { p.text(2, "a\xff z"); }) ==
        "\x12\x06"
        "a\ufffd z");
  CHECK(fields([](Protobuf& p) { p.text(15, ""); }) == "\x7a\0"s);
}

TEST_CASE("a message has its length in front, however long it is") {
  for (const std::size_t size : {0U, 1U, 125U, 126U, 127U, 128U, 16'381U, 16'382U, 16'383U, 16'384U, 3'000'000U}) {
    CAPTURE(size);
    const std::string content(size, 'x');
    std::string out = "before";
    Protobuf(out).message(4, [&] { out += content; });
    CHECK(out == "before\x22" + varint(size) + content);
  }
}

TEST_CASE("messages in messages") {
  std::string out;
  Protobuf outer(out);
  outer.message(1, [&] {
    Protobuf(out).message(2, [&] { out += std::string(200, 'y'); });
    Protobuf(out).integer(3, 1);
  });
  CHECK(out == "\x0a\xcd\x01\x12\xc8\x01" + std::string(200, 'y') + "\x18\x01");
}

}  // namespace
}  // namespace tacho::metrics
