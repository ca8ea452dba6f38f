#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tacho::web {

/// Largest request body that is read, in bytes; larger ones are refused.
inline constexpr std::size_t kMaxBody = std::size_t{64} << 10;

struct Request {
  std::string method;  ///< "GET", "HEAD" …
  std::string path;    ///< as sent, not decoded; starts with '/'
  std::string query;   ///< after '?', not decoded; empty if there is none
  std::string remote;  ///< the client's address without port; empty for unix sockets
  std::string body;    ///< at most kMaxBody bytes
  std::vector<std::pair<std::string, std::string>> headers;

  /// The first header of that name, whatever its case (RFC 9110 §5.1).
  [[nodiscard]] std::optional<std::string> header(std::string_view name) const;
};

/// Content-Length, Connection, Date, Vary and Content-Encoding are the server's; of a name given here and in the web
/// configuration, this one is sent.
struct Response {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
};

/// Called on several threads at once. What it throws becomes a 500.
using Handler = std::function<Response(const Request&)>;

struct Route {
  std::string path;                  ///< compared as a whole
  std::vector<std::string> methods;  ///< "GET" implies HEAD; HEAD gets the same headers and no body
  Handler handler;
};

/// Whether two header names are the same; case does not count.
bool same_name(std::string_view left, std::string_view right);

}  // namespace tacho::web
