#pragma once

#include <cerrno>
#include <expected>
#include <string>
#include <system_error>
#include <utility>

namespace tacho {

/// Why something failed: a message for the user that names the place and the remedy, and the errno behind
/// it (0 where there is none).
struct Error {
  std::string message;
  int code = 0;

  /// "what: strerror(code)".
  static Error from_errno(std::string what, int code) {
    return {std::move(what) + ": " + std::system_category().message(code), code};
  }

  /// The same error seen from one level up: "outer: message".
  [[nodiscard]] Error within(const std::string& outer) const { return {outer + ": " + message, code}; }
};

template <class T>
using Result = std::expected<T, Error>;

inline std::unexpected<Error> fail(std::string message, int code = 0) {
  return std::unexpected(Error{std::move(message), code});
}

inline std::unexpected<Error> fail_errno(std::string what, int code = errno) {
  return std::unexpected(Error::from_errno(std::move(what), code));
}

}  // namespace tacho
