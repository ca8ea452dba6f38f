#include "metrics/protobuf.h"

#include <array>
#include <bit>
#include <cstring>

#include "metrics/escape.h"

namespace tacho::metrics {
char* write_varint(char* out, std::uint64_t value) {
  constexpr std::uint64_t kMore = 0x80;
  for (; value >= kMore; value >>= 7U) {
    *out++ = static_cast<char>(value | kMore);
  }
  *out++ = static_cast<char>(value);
  return out;
}

void append_varint(std::string& out, std::uint64_t value) {
  std::array<char, kMaxVarint> digits;  // NOLINT(cppcoreguidelines-pro-type-member-init): written before it is read
  out.append(digits.data(), write_varint(digits.data(), value));
}

char* write_fixed64(char* out, double value) {
  auto bits = std::bit_cast<std::uint64_t>(value);
  if constexpr (std::endian::native == std::endian::big) {
    bits = __builtin_bswap64(bits);
  }
  std::memcpy(out, &bits, sizeof(bits));
  return out + sizeof(bits);
}

void Protobuf::real(unsigned field, double value) {
  tag(field, kFixed64);
  std::array<char, sizeof(value)> bytes{};
  out_.append(bytes.data(), write_fixed64(bytes.data(), value));
}

void Protobuf::text(unsigned field, std::string_view value) {
  std::string repaired;
  const std::string_view valid = valid_utf8(value, repaired);
  tag(field, kBytes);
  append_varint(out_, valid.size());
  out_.append(valid);
}

void Protobuf::set_length(std::size_t at) {
  std::array<char, kMaxVarint> digits;  // NOLINT(cppcoreguidelines-pro-type-member-init): written before it is read
  const auto length = static_cast<std::size_t>(write_varint(digits.data(), out_.size() - at - 1) - digits.data());
  out_.insert(at + 1, length - 1, '\0');
  std::memcpy(out_.data() + at, digits.data(), length);
}

}  // namespace tacho::metrics
