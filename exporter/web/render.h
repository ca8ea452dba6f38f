#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <string>

#include "web/message.h"

namespace tacho::web {

/// Bodies from this size on are compressed for clients that take it, in bytes.
inline constexpr std::size_t kMinCompressed = 1024;

struct Rendered {
  std::string head;                    ///< status line and headers, with the empty line
  std::shared_ptr<const Pieces> body;  ///< as sent; none for HEAD
};

/// A page made for many clients, in the encodings that they take.
struct Page {
  std::string content_type;
  std::shared_ptr<const Pieces> plain;   ///< none: no client wanted it
  std::shared_ptr<const Pieces> zipped;  ///< none: the same, or too little was gained, or memory did not suffice
};

struct RenderOptions {
  bool head_only = false;
  bool gzip = false;                           ///< the client takes it
  std::map<std::string, std::string> headers;  ///< of the web configuration
  std::chrono::system_clock::time_point now = std::chrono::system_clock::now();
};

/// The bytes of an HTTP/1.1 response on a connection that ends with it. Control characters in header values become
/// spaces.
Rendered render(Response response, const RenderOptions& options);

/// The same for one client of a page.
Rendered render(const Page& page, const RenderOptions& options);

std::size_t size_of(const Pieces& pieces);

/// "Fri, 20 Nov 2026 23:26:29 GMT" (RFC 9110 §5.6.7), in any locale.
std::string http_date(std::chrono::system_clock::time_point time);

/// "Not Found" of 404; "Status" of what HTTP does not know.
std::string_view reason_phrase(int status);

}  // namespace tacho::web
