#include "top/url.h"

#include <algorithm>
#include <charconv>

#include "base/utf8.h"

namespace tacho::top {
namespace {

constexpr std::string_view kOwnPort = "9435";

std::unexpected<Error> refuse(std::string_view text, const std::string& what) {
  return fail("--url: " + printable(text) + ": " + what +
                  "; it looks like http://HOST:9435, https://HOST or unix:/run/tacho.sock",
              EINVAL);
}

bool is_port(std::string_view text) {
  std::uint16_t number = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  return read.ec == std::errc{} && read.ptr == text.data() + text.size() && number > 0;
}

/// Takes "USER:PASSWORD@" off the front.
void take_user(std::string_view& rest, Url& url) {
  const std::size_t at = rest.rfind('@');
  if (at == std::string_view::npos) {
    return;
  }
  const std::string_view login = rest.substr(0, at);
  const std::size_t colon = std::min(login.find(':'), login.size());
  url.user = login.substr(0, colon);
  url.password = login.substr(std::min(colon + 1, login.size()));
  rest.remove_prefix(at + 1);
}

}  // namespace

std::string Url::text() const {
  if (!socket.empty()) {
    return "unix:" + printable(socket);
  }
  const std::string name = host.find(':') == std::string::npos ? host : "[" + host + "]";
  return printable((tls ? "https://" : "http://") + name + ":" + port + prefix);
}

Result<Url> parse_url(std::string_view text) {
  Url url;
  if (text.starts_with("unix:")) {
    url.socket = text.substr(5);
    url.host = "localhost";
    url.port = "80";
    return url.socket.empty() ? Result<Url>(refuse(text, "a path is missing")) : url;
  }
  std::string_view rest = text;
  if (const std::size_t scheme = rest.find("://"); scheme != std::string_view::npos) {
    if (rest.substr(0, scheme) != "http" && rest.substr(0, scheme) != "https") {
      return refuse(text, "only http, https and unix are known");
    }
    url.tls = rest.substr(0, scheme) == "https";
    rest.remove_prefix(scheme + 3);
  }
  const std::size_t slash = std::min(rest.find('/'), rest.size());
  url.prefix = rest.substr(slash);
  while (url.prefix.ends_with('/')) {
    url.prefix.pop_back();
  }
  rest = rest.substr(0, slash);
  take_user(rest, url);
  const std::size_t bracket = rest.starts_with('[') ? rest.find(']') : std::string_view::npos;
  if (rest.starts_with('[') && bracket == std::string_view::npos) {
    return refuse(text, "a ] is missing");
  }
  const std::size_t colon = bracket == std::string_view::npos ? rest.rfind(':') : rest.find(':', bracket);
  url.host = bracket == std::string_view::npos ? rest.substr(0, colon) : rest.substr(1, bracket - 1);
  url.port = colon == std::string_view::npos ? (url.tls ? "443" : kOwnPort) : rest.substr(colon + 1);
  if (url.host.empty()) {
    url.host = "127.0.0.1";
  }
  const auto unfit = [](char c) { return static_cast<unsigned char>(c) <= ' ' || c == '\x7f'; };
  if (std::ranges::any_of(url.host, unfit) || std::ranges::any_of(url.prefix, unfit)) {
    return refuse(text, "it has a space or a control character");
  }
  if (!is_port(url.port)) {
    return refuse(text, "the port is no number from 1 to 65535");
  }
  return url;
}

}  // namespace tacho::top
