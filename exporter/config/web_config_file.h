#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "config/config.h"

namespace tacho::config {

/// Whether clients must show a certificate, in the order of Go's crypto/tls.ClientAuthType.
enum class ClientAuth : std::uint8_t { none, request, require_any, verify_if_given, require_and_verify };

enum class TlsVersion : std::uint8_t { tls10, tls11, tls12, tls13 };

/// A PEM document, in the web configuration itself or in a file.
struct Pem {
  std::string text;
  std::filesystem::path file;  ///< resolved against the directory of the web configuration; empty: `text` counts

  [[nodiscard]] bool given() const { return !text.empty() || !file.empty(); }
};

/// `tls_server_config:`; suites and curves by Go's names.
struct TlsServer {
  Pem certificate;
  Pem key;
  ClientAuth client_auth = ClientAuth::none;
  Pem client_ca;                                 ///< not given: the system's authorities
  std::vector<std::string> client_allowed_sans;  ///< one must be in the client's certificate; empty: any will do
  TlsVersion min_version = TlsVersion::tls12;
  TlsVersion max_version = TlsVersion::tls13;
  std::vector<std::string> cipher_suites;  ///< empty: the library's
  bool prefer_server_cipher_suites = true;
  std::vector<std::string> curve_preferences;  ///< empty: the library's
};

/// `http_server_config:`.
struct HttpServer {
  using Headers = std::map<std::string, std::string>;

  bool http2 = false;  ///< only a wish: it is not served
  Headers headers;     ///< added to every response; an empty value removes a default one
};

/// `rate_limit:`: a token every `interval`, at most `burst` of them saved up; a request takes one.
struct RateLimit {
  Duration interval{};  ///< zero: no limit
  unsigned burst = 0;
};

/// The web configuration that Prometheus' exporters share (exporter-toolkit, docs/web-configuration.md).
struct WebConfig {
  std::optional<TlsServer> tls;  ///< none: plain HTTP
  HttpServer http;
  std::map<std::string, std::string> users;  ///< name → bcrypt hash; empty: no authentication
  std::optional<RateLimit> rate_limit;
  std::vector<std::string> warnings;  ///< "file:line:col: warning: …", for the user
};

/// Reads text as if it stood in `file`. The error's message holds all that is wrong, a line each as
/// "file:line:col: error: …"; passwords are not repeated in it.
Result<WebConfig> parse_web_config(std::string_view text, const std::filesystem::path& file);

/// Reads a file: its text, cut after one byte more than the limit.
using ReadFile = std::function<Result<std::string>(const std::filesystem::path& path, std::size_t limit)>;

/// The same for the file's text. @param read none: from disk
Result<WebConfig> read_web_config(const std::filesystem::path& file, const ReadFile& read = {});

}  // namespace tacho::config
