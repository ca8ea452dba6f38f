#include "web/encoding.h"

#define ZLIB_CONST  // input is only read
#include <zlib.h>

#include <algorithm>
#include <ranges>
#include <utility>

#include "base/weight.h"
#include "web/message.h"

namespace tacho::web {
namespace {

constexpr int kGzipWindow = 15 + 16;  // zlib's way to ask for the gzip format
constexpr int kMemory = 8;            // zlib's default
constexpr std::size_t kChunk = 65536;

std::string_view trim(std::string_view text) {
  constexpr std::string_view kBlank = " \t";
  const std::size_t first = std::min(text.find_first_not_of(kBlank), text.size());
  const std::size_t last = text.find_last_not_of(kBlank);
  return last == std::string_view::npos ? std::string_view{} : text.substr(first, last + 1 - first);
}

/// Whether the parameters of one entry leave it acceptable; a malformed weight does not.
bool has_weight(std::string_view parameters) {
  for (const auto part : parameters | std::views::split(';')) {
    const std::string_view parameter = trim(std::string_view(part.begin(), part.end()));
    if (same_name(parameter.substr(0, 2), "q=")) {
      return parse_weight(parameter.substr(2)).value_or(0) > 0;
    }
  }
  return true;
}

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
  for (const auto part : *accept_encoding | std::views::split(',')) {
    const std::string_view entry(part.begin(), part.end());
    const std::size_t semicolon = std::min(entry.find(';'), entry.size());
    const std::string_view coding = trim(entry.substr(0, semicolon));
    const bool acceptable = has_weight(entry.substr(semicolon));
    if (same_name(coding, "gzip") || same_name(coding, "x-gzip")) {
      return acceptable;
    }
    by_wildcard = by_wildcard || (coding == "*" && acceptable);
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
