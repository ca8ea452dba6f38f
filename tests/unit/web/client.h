#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/unique_fd.h"

namespace tacho::web::test {

/// An HTTP response as it came over the wire.
struct Reply {
  int status = 0;  ///< 0: nothing that looks like a response
  std::string head;
  std::string body;

  static Reply parse(const std::string& bytes);
  /// Value of the first header of that name, exactly so spelled.
  [[nodiscard]] std::optional<std::string> header(const std::string& name) const;
};

/// A blocking connection to a server on this machine; no call waits longer than ten seconds.
class Client {
 public:
  /// "127.0.0.1:80", "[::1]:80", "unix:/path". Throws if there is no connection.
  /// @param from "127.0.0.2": the address of this side; empty: the kernel's choice
  explicit Client(const std::string& address, int receive_buffer = 0, const std::string& from = {});

  /// Whether all of it could be sent.
  bool send(std::string_view bytes) const;
  /// Sends FIN.
  void finish() const;
  /// All until the other side closes (or resets) the connection; throws if it does not.
  [[nodiscard]] std::string read_all() const;
  /// At most `size` bytes, at least one unless the connection has ended.
  [[nodiscard]] std::string read_some(std::size_t size) const;

  [[nodiscard]] int fd() const { return fd_.get(); }

 private:
  UniqueFd fd_;
};

/// "127.0.0.1:port" of "[::]:port".
std::string loopback(const std::string& bound);

/// Sends the bytes on a connection of its own and reads the response.
Reply round_trip(const std::string& address, std::string_view bytes);

/// "GET path HTTP/1.1" with further header lines, each ending with CRLF.
std::string get_request(const std::string& path, const std::string& headers = {});
Reply get(const std::string& address, const std::string& path, const std::string& headers = {});

/// Whether `scrape` succeeds in less than a second. It may try three times, since the machine may be busy with other
/// things for longer than that; what slow clients hold up stays so for five seconds each time.
bool prompt(const std::function<bool()>& scrape);

std::chrono::milliseconds since(std::chrono::steady_clock::time_point start);

}  // namespace tacho::web::test
