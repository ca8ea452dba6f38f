#include "kernel/unpack.h"

#include <zlib.h>

#include <cerrno>
#include <cstdint>

namespace tacho::kernel {
namespace {

constexpr int kGzipWindow = 15 + 16;  // zlib's way to ask for the gzip format
constexpr std::size_t kHeader = 10;
constexpr std::size_t kTrailer = 8;  // checksum and size
/// No object is that large: the size in what is not whole may be anything.
constexpr std::size_t kMost = std::size_t{256} << 20U;

bool is_gzip(std::span<const std::byte> bytes) {
  return bytes.size() >= kHeader + kTrailer && bytes[0] == std::byte{0x1f} && bytes[1] == std::byte{0x8b};
}

/// The last four bytes, little endian (RFC 1952, 2.3.1).
std::size_t size_of(std::span<const std::byte> gzip) {
  std::size_t size = 0;
  for (std::size_t i = 1; i <= 4; ++i) {
    size = size << 8U | std::to_integer<std::size_t>(gzip[gzip.size() - i]);
  }
  return size;
}

/// Whether `whole` is filled by all of `gzip`, whose checksum is right.
bool inflate_into(std::vector<std::byte>& whole, std::span<const std::byte> gzip) {
  z_stream stream{};
  if (inflateInit2(&stream, kGzipWindow) != Z_OK) {
    return false;
  }
  // zlib reads it only; its interface does not say so everywhere.
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(gzip.data()));
  stream.avail_in = static_cast<uInt>(gzip.size());
  stream.next_out = reinterpret_cast<Bytef*>(whole.data());
  stream.avail_out = static_cast<uInt>(whole.size());
  const int result = inflate(&stream, Z_FINISH);
  const bool done = result == Z_STREAM_END && stream.avail_in == 0 && stream.avail_out == 0;
  inflateEnd(&stream);
  return done;
}

}  // namespace

Result<std::vector<std::byte>> unpack(std::span<const std::byte> embedded) {
  if (!is_gzip(embedded)) {
    return std::vector<std::byte>(embedded.begin(), embedded.end());
  }
  const std::size_t size = size_of(embedded);
  if (size > kMost) {
    return fail("an embedded object is not whole", EINVAL);
  }
  std::vector<std::byte> whole(size);
  if (!inflate_into(whole, embedded)) {
    return fail("an embedded object is not whole", EINVAL);
  }
  return whole;
}

}  // namespace tacho::kernel
