#include "web/encoding.h"

#include <zlib.h>

#include <algorithm>
#include <ranges>

#include "web/message.h"

namespace tacho::web {
namespace {

constexpr int kGzipWindow = 15 + 16;  // zlib's way to ask for the gzip format
constexpr int kMemory = 8;            // zlib's default

std::string_view trim(std::string_view text) {
  constexpr std::string_view kBlank = " \t";
  const std::size_t first = std::min(text.find_first_not_of(kBlank), text.size());
  const std::size_t last = text.find_last_not_of(kBlank);
  return last == std::string_view::npos ? std::string_view{} : text.substr(first, last + 1 - first);
}

/// Whether the parameters of one entry leave it acceptable. A weight is 0 or up to three decimals, so one that is not
/// zero has a digit other than 0 somewhere.
bool has_weight(std::string_view parameters) {
  for (const auto part : parameters | std::views::split(';')) {
    const std::string_view parameter = trim(std::string_view(part.begin(), part.end()));
    if (parameter.size() > 2 && same_name(parameter.substr(0, 2), "q=")) {
      return parameter.find_first_of("123456789", 2) != std::string_view::npos;
    }
  }
  return true;
}

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

std::optional<std::string> gzip(std::string_view text) {
  z_stream stream{};
  if (deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, kGzipWindow, kMemory, Z_DEFAULT_STRATEGY) != Z_OK) {
    return std::nullopt;
  }
  std::string input(text);  // zlib's interface is not const
  std::string out(deflateBound(&stream, input.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(input.data());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_in = static_cast<uInt>(input.size());
  stream.avail_out = static_cast<uInt>(out.size());
  const int result = deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return result == Z_STREAM_END ? std::optional(std::move(out)) : std::nullopt;
}

}  // namespace tacho::web
