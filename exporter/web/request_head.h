#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "web/message.h"

namespace tacho::web {

/// Largest request head (request line and headers), in bytes, and most headers.
inline constexpr std::size_t kMaxRequestHead = 16384;
inline constexpr std::size_t kMaxHeaders = 64;

/// Collects a request head as it arrives; examines each byte once.
class HeadCollector {
 public:
  enum class State : std::uint8_t {
    incomplete,  ///< wait for more
    complete,    ///< up to the empty line
    malformed,   ///< will never be a request: a control character
    too_large,   ///< in bytes or in headers
  };

  State add(std::string_view bytes);
  [[nodiscard]] bool empty() const { return text_.empty(); }
  /// The head with its empty line, once it is complete.
  [[nodiscard]] std::string take() { return std::move(text_); }

 private:
  std::string text_;
  std::size_t begin_ = 0;  // after empty lines, which RFC 9112 §2.2 has us ignore
  std::size_t lines_ = 0;  // that have ended
  bool in_line_ = false;   // the line that comes is not empty
};

/// The request in a complete head, or the status that refuses it. Stricter than older HTTP parsers (RFC 9112): one
/// Host, no blank before a colon, no continued lines, at most one Content-Length. A request that announces a body is
/// refused (413, or 411 if it does not give its length): no endpoint reads one.
std::variant<Request, int> parse_request(std::string head);

}  // namespace tacho::web
