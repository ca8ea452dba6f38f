#include "web/encoding.h"

#define ZLIB_CONST  // input is only read
#include <zlib.h>

#include <utility>

#include "base/accept_list.h"

namespace tacho::web {
namespace {

constexpr int kGzipWindow = 15 + 16;  // zlib's way to ask for the gzip format
constexpr int kMemory = 8;            // zlib's default
constexpr std::size_t kChunk = 65536;

class Deflater {
 public:
  Deflater()
      : good_(deflateInit2(&stream_, Z_BEST_SPEED, Z_DEFLATED, kGzipWindow, kMemory, Z_DEFAULT_STRATEGY) == Z_OK) {}
  Deflater(const Deflater&) = delete;
  Deflater& operator=(const Deflater&) = delete;
  ~Deflater() { deflateEnd(&stream_); }

  bool add(std::string_view text, int flush) {
    stream_.next_in = reinterpret_cast<const Bytef*>(text.data());
    stream_.avail_in = static_cast<uInt>(text.size());
    do {
      stream_.next_out = reinterpret_cast<Bytef*>(chunk_.data());
      stream_.avail_out = static_cast<uInt>(chunk_.size());
      const int result = good_ ? deflate(&stream_, flush) : Z_STREAM_ERROR;
      if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR) {
        return false;
      }
      const std::size_t made = chunk_.size() - stream_.avail_out;
      if (made > 0) {
        out_.emplace_back(std::string(chunk_.data(), made));
      }
    } while (stream_.avail_out == 0);
    return true;
  }
  Pieces take() { return std::move(out_); }

 private:
  z_stream stream_{};
  bool good_;
  std::string chunk_ = std::string(kChunk, '\0');
  Pieces out_;
};

}  // namespace

bool accepts_gzip(const std::optional<std::string>& accept_encoding) {
  if (!accept_encoding) {
    return false;
  }
  bool by_wildcard = false;
  for (const AcceptEntry& entry : parse_accept_list(*accept_encoding)) {
    const bool acceptable = !entry.malformed && entry.weight > 0;
    if (entry.type == "gzip" || entry.type == "x-gzip") {
      return acceptable;
    }
    by_wildcard = by_wildcard || (entry.type == "*" && acceptable);
  }
  return by_wildcard;
}

std::optional<Pieces> gzip(Pieces& text, bool keep) {
  Deflater deflater;
  for (Piece& piece : text) {
    if (!deflater.add(piece.view(), Z_NO_FLUSH)) {
      return std::nullopt;
    }
    if (!keep) {
      piece = {};
    }
  }
  return deflater.add({}, Z_FINISH) ? std::optional(deflater.take()) : std::nullopt;
}

std::optional<std::string> gzip(std::string text) {
  Pieces pieces;
  pieces.push_back(std::move(text));
  const auto compressed = gzip(pieces, false);
  if (!compressed) {
    return std::nullopt;
  }
  std::string whole;
  for (const Piece& piece : *compressed) {
    whole += piece.view();
  }
  return whole;
}

}  // namespace tacho::web
