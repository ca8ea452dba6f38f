#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "base/unique_fd.h"

namespace tacho::web {

/// Where to listen, in the notation of Prometheus' `--web.listen-address`: ":9100" (every IPv4 and IPv6 address),
/// "127.0.0.1:9100", "[::1]:9100", "localhost:9100", "unix:/run/tacho.sock" ("unix:@name": abstract).
struct ListenAddress {
  std::string text;  ///< as given
  std::string host;  ///< empty: every address; of a unix socket: its path
  std::uint16_t port = 0;
  bool is_unix = false;

  /// Errors name the text and how to write it.
  static Result<ListenAddress> parse(std::string_view text);
};

/// A listening, non-blocking stream socket. A unix socket's path is removed with it.
class Listener {
 public:
  /// Errors name the address and the remedy. A host name means its first address, IPv4 before IPv6. A unix socket file
  /// that nobody listens on any more is replaced.
  static Result<Listener> open(const ListenAddress& address);

  /// Takes a descriptor that listens already and was made elsewhere; its path is not removed.
  static Listener adopt(UniqueFd fd, std::string bound, bool is_unix) {
    return {std::move(fd), std::move(bound), "", is_unix};
  }

  Listener(Listener&& other) noexcept
      : fd_(std::move(other.fd_)),
        bound_(std::move(other.bound_)),
        path_(std::exchange(other.path_, {})),
        is_unix_(other.is_unix_) {}
  Listener& operator=(Listener&&) = delete;
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
  ~Listener();

  [[nodiscard]] int fd() const { return fd_.get(); }
  /// Stops listening; a process with another descriptor of the socket may go on.
  void close() { fd_.reset(); }
  [[nodiscard]] bool is_unix() const { return is_unix_; }

  /// The bound address: "[::]:9100" with the port the kernel chose for port 0; "unix:/path".
  [[nodiscard]] const std::string& bound() const { return bound_; }

 private:
  Listener(UniqueFd fd, std::string bound, std::string path, bool is_unix)
      : fd_(std::move(fd)), bound_(std::move(bound)), path_(std::move(path)), is_unix_(is_unix) {}

  static Result<Listener> open_unix(const ListenAddress& address);
  static Result<Listener> open_tcp(const ListenAddress& address);

  UniqueFd fd_;
  std::string bound_;
  std::string path_;  // to remove
  bool is_unix_;
};

}  // namespace tacho::web
