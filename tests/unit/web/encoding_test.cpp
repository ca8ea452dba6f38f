#include "web/encoding.h"

#include <zlib.h>

#include <catch2/catch.hpp>
#include <utility>

namespace tacho::web {
namespace {

std::string inflate_gzip(std::string compressed, std::size_t size) {
  z_stream stream{};
  REQUIRE(inflateInit2(&stream, 15 + 16) == Z_OK);
  std::string out(size + 1, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(compressed.data());
  stream.avail_in = static_cast<uInt>(compressed.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  CHECK(inflate(&stream, Z_FINISH) == Z_STREAM_END);
  CHECK(stream.avail_in == 0);
  out.resize(stream.total_out);
  inflateEnd(&stream);
  return out;
}

TEST_CASE("Whether gzip is accepted follows RFC 9110") {
  const auto [header, expected] = GENERATE(table<const char*, bool>({
      {"gzip", true},
      {"GZIP", true},
      {"x-gzip", true},
      {"deflate, gzip;q=1.0, *;q=0.5", true},
      {"br;q=1.0, gzip;q=0.8", true},
      {"gzip; q=0.001", true},
      {"gzip ;\tQ=1", true},
      {"*", true},
      {"identity, *;q=0.1", true},
      {"", false},
      {"identity", false},
      {"br, deflate", false},
      {"gzip;q=0", false},
      {"gzip;q=0.0", false},
      {"gzip; q=0.000", false},
      {"gzip;q=7", false},
      {"gzip;q=0.0001", false},
      {"gzip;q=0x1", false},
      {"gzip;q=", false},
      {"gzip;q=0, *", false},
      {"*, gzip;q=0", false},
      {"*;q=0", false},
      {"gzipped", false},
      {"not-gzip", false},
      {",,;,", false},
  }));
  INFO(header);
  CHECK(accepts_gzip(header) == expected);
}

TEST_CASE("A client that does not say so does not accept gzip") {
  CHECK_FALSE(accepts_gzip(std::nullopt));
}

TEST_CASE("What was compressed comes back the same") {
  std::string text;
  const auto lines = GENERATE(0, 1, 100'000);
  for (int i = 0; i < lines; ++i) {
    text += "tacho_requests_total{target=\"web\"} " + std::to_string(i * 7919) + '\n';
  }
  const auto compressed = gzip(text);
  REQUIRE(compressed);
  CHECK(inflate_gzip(*compressed, text.size()) == text);
  CHECK((lines < 100 || compressed->size() < text.size() / 3));
}

TEST_CASE("A text in pieces is compressed piece by piece") {
  Pieces pieces(40, std::string(100'000, 'x') + "end\n");
  std::string whole;
  for (const Piece& piece : pieces) {
    whole += piece.view();
  }
  const bool keep = GENERATE(true, false);
  const auto compressed = gzip(pieces, keep);
  REQUIRE(compressed);
  std::string joined;
  for (const Piece& piece : *compressed) {
    joined += piece.view();
  }
  CHECK(inflate_gzip(joined, whole.size()) == whole);
  CHECK(joined == *gzip(whole));
  CHECK(pieces.front().empty() == !keep);
}

}  // namespace
}  // namespace tacho::web
