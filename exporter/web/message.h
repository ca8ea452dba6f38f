#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tacho::web {

/// A request without a body: no endpoint reads one, and a client that announces one is refused.
struct Request {
  std::string method;  ///< "GET", "HEAD" …
  std::string path;    ///< as sent, not decoded; starts with '/'
  std::string query;   ///< after '?', not decoded; empty if there is none
  std::string remote;  ///< the client's address without port; empty for unix sockets
  std::vector<std::pair<std::string, std::string>> headers;
  bool local = false;          ///< from this machine: over loopback or a unix socket
  bool encrypted = false;      ///< over TLS: the client has checked the name in its request
  bool authenticated = false;  ///< a user logged in, or a client's certificate was verified

  /// The first header of that name, whatever its case (RFC 9110 §5.1).
  [[nodiscard]] std::optional<std::string> header(std::string_view name) const;
};

/// A part of a long text: a string of its own, or memory that it keeps.
class Piece {
 public:
  Piece() = default;
  Piece(std::string text) : text_(std::move(text)) {}  // NOLINT(google-explicit-constructor): a text is a piece
  Piece(const char* text) : text_(text) {}             // NOLINT(google-explicit-constructor)
  Piece(std::shared_ptr<const void> owner, std::string_view view) : owner_(std::move(owner)), view_(view) {}

  [[nodiscard]] std::string_view view() const { return owner_ ? view_ : std::string_view(text_); }
  [[nodiscard]] std::size_t size() const { return view().size(); }
  [[nodiscard]] bool empty() const { return view().empty(); }

 private:
  std::string text_;
  std::shared_ptr<const void> owner_;
  std::string_view view_;
};

/// A long text: the pieces follow each other.
using Pieces = std::vector<Piece>;

/// The server sets Content-Length, Connection, Date, Vary and Content-Encoding. A header that is given here and in the
/// web configuration is sent as given here.
struct Response {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
};

/// Called on several threads at once. An exception becomes a 500.
using Handler = std::function<Response(const Request&)>;

/// A page that is large and the same for everybody. It is made once for all clients that ask within the same moment,
/// one page at a time, and never begun before they asked.
struct SharedPage {
  std::function<std::string(const Request&)> content_type;           ///< which of the page's forms is asked for
  std::function<Pieces(const std::string& content_type)> make = {};  ///< an exception becomes a 500
};

struct Route {
  std::string path;                     ///< compared as a whole
  std::vector<std::string> methods;     ///< "GET" implies HEAD; HEAD gets the same headers and no body
  Handler handler = {};                 ///< unless `page` is given
  std::optional<SharedPage> page = {};  ///< for GET
  bool immediate = false;               ///< the handler waits for nothing: answered whatever else is stuck
};

/// Whether two header names are the same; case does not count.
bool same_name(std::string_view left, std::string_view right);

}  // namespace tacho::web
