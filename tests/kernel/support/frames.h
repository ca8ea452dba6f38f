#pragma once

#include <cstdint>
#include <string>

// Frames of HTTP/2, by their headers (RFC 9113, 4.1); what is in them nobody looks at.

namespace tacho::kernel_test {

inline const std::string kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
enum FrameType : std::uint8_t { kData = 0, kHeaders = 1, kReset = 3, kSettings = 4, kPing = 6, kWindowUpdate = 8 };

inline constexpr std::uint8_t kEndStream = 1;
inline constexpr std::uint8_t kEndHeaders = 4;

inline std::string frame(FrameType type, std::uint32_t stream, const std::string& payload,
                         std::uint8_t flags = kEndHeaders) {
  const std::size_t length = payload.size();
  std::string text;
  for (const std::uint64_t byte :
       {length >> 16, length >> 8, length, std::size_t{type}, std::size_t{flags}, std::size_t{stream >> 24},
        std::size_t{stream >> 16}, std::size_t{stream >> 8}, std::size_t{stream}}) {
    text.push_back(static_cast<char>(byte & 0xff));
  }
  return text + payload;
}

inline std::string frame(FrameType type, std::uint32_t stream, std::size_t length) {
  return frame(type, stream, std::string(length, 'x'));
}

}  // namespace tacho::kernel_test
