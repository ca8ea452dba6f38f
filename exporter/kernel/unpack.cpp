#include "kernel/unpack.h"

#include <lzma.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <optional>

namespace tacho::kernel {
namespace {

/// What xz's format begins with.
constexpr std::array<std::uint8_t, 6> kMagic{0xfd, '7', 'z', 'X', 'Z', 0};
/// What the decoder may allocate: bpf/embed's dictionary of 1 MiB, and as much again for all else.
constexpr std::uint64_t kMostMemory = std::uint64_t{2} << 20U;
/// No object is that large: a size that is may be of anything.
constexpr std::uint64_t kMost = std::uint64_t{256} << 20U;

const std::uint8_t* data_of(std::span<const std::byte> bytes) {
  return reinterpret_cast<const std::uint8_t*>(bytes.data());
}

/// What an index, which lies before the footer, says that all before it becomes.
std::optional<std::uint64_t> size_of(std::span<const std::byte> xz) {
  if (xz.size() < LZMA_STREAM_HEADER_SIZE) {
    return std::nullopt;
  }
  const std::size_t end = xz.size() - LZMA_STREAM_HEADER_SIZE;
  lzma_stream_flags footer{};
  if (lzma_stream_footer_decode(&footer, data_of(xz) + end) != LZMA_OK || footer.backward_size > end) {
    return std::nullopt;
  }
  lzma_index* decoded = nullptr;
  std::uint64_t memory = kMostMemory;
  std::size_t place = end - footer.backward_size;
  if (lzma_index_buffer_decode(&decoded, &memory, nullptr, data_of(xz), &place, end) != LZMA_OK) {
    return std::nullopt;
  }
  const auto free_index = [](lzma_index* index) { lzma_index_end(index, nullptr); };
  const std::unique_ptr<lzma_index, decltype(free_index)> index(decoded);
  return lzma_index_uncompressed_size(index.get());
}

/// Whether `whole` is filled by all of `xz`, whose checksum is right.
bool decode_into(std::vector<std::byte>& whole, std::span<const std::byte> xz) {
  std::uint64_t memory = kMostMemory;
  std::size_t read = 0;
  std::size_t written = 0;
  return lzma_stream_buffer_decode(&memory, 0, nullptr, data_of(xz), &read, xz.size(),
                                   reinterpret_cast<std::uint8_t*>(whole.data()), &written, whole.size()) == LZMA_OK &&
         read == xz.size() && written == whole.size();
}

}  // namespace

Result<std::vector<std::byte>> unpack(std::span<const std::byte> embedded) {
  if (embedded.size() < kMagic.size() || !std::equal(kMagic.begin(), kMagic.end(), data_of(embedded))) {
    return std::vector<std::byte>(embedded.begin(), embedded.end());
  }
  const auto size = size_of(embedded);
  std::vector<std::byte> whole(size && *size <= kMost ? *size : 0);
  if (whole.empty() || !decode_into(whole, embedded)) {
    return fail("an embedded object is not whole", EINVAL);
  }
  return whole;
}

}  // namespace tacho::kernel
