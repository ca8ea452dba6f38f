#include "config/web_config_file.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/regular_file.h"
#include "config/types.h"

namespace tacho::config {
namespace {

constexpr std::size_t kMaxText = 4096;
constexpr unsigned kSlowBcryptCost = 14;  // about a second for a login

/// Prometheus' exporters take numbers without quotes for text, too (`X-XSS-Protection: 1`), and share these files.
Type<std::string> line(std::string summary) {
  Type<std::string> type = text({.summary = std::move(summary), .max_bytes = kMaxText, .check = {}});
  type.read = [read = type.read](Node node, std::string& out, const Context& context) {
    node.plain = false;
    read(node, out, context);
  };
  return type;
}

Type<std::string> word_of(std::vector<std::string_view> words, std::string summary) {
  Type<std::string> type = line(std::move(summary));
  type.read = [words = std::move(words)](const Node& node, std::string& out, const Context& context) {
    if (const auto index = detail::read_word(node, words, context)) {
      out = words[*index];
    }
  };
  return type;
}

/// Fills the file, or the text, of a PEM document that has a key for either.
Type<Pem> pem(bool is_file) {
  const Type<std::string> path = line("a path");
  Type<Pem> type;
  type.summary = is_file ? path.summary : "PEM text";
  type.show = [](const Pem&) { return Json(); };
  type.read = [=](const Node& node, Pem& out, const Context& context) {
    std::string text;
    if (is_file) {
      path.read(node, text, context);
      out.file = text;
    } else if (node.kind == Node::Kind::scalar) {
      out.text = node.text;
    } else {
      context.wrong_type(node, "PEM text");
    }
  };
  return type;
}

/// crypto/tls.CipherSuites() of Go, with those of RSA key exchange, which it dropped in 1.22.
Type<std::string> cipher_suite() {
  return word_of({"TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256",
                  "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA", "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA",
                  "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA", "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA",
                  "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
                  "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
                  "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256", "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
                  "TLS_RSA_WITH_AES_128_CBC_SHA", "TLS_RSA_WITH_AES_256_CBC_SHA", "TLS_RSA_WITH_AES_128_GCM_SHA256",
                  "TLS_RSA_WITH_AES_256_GCM_SHA384"},
                 "a cipher suite");
}

Type<TlsVersion> tls_version() {
  return choice<TlsVersion>({{"TLS10", TlsVersion::tls10},
                             {"TLS11", TlsVersion::tls11},
                             {"TLS12", TlsVersion::tls12},
                             {"TLS13", TlsVersion::tls13}});
}

Type<ClientAuth> client_auth() {
  return choice<ClientAuth>({{"NoClientCert", ClientAuth::none},
                             {"RequestClientCert", ClientAuth::request},
                             {"RequireAnyClientCert", ClientAuth::require_any},
                             {"RequireClientCert", ClientAuth::require_any},
                             {"VerifyClientCertIfGiven", ClientAuth::verify_if_given},
                             {"RequireAndVerifyClientCert", ClientAuth::require_and_verify}});
}

/// Where the value of `key` stands, or else the section.
Location where(const Node& section, std::string_view key) {
  const Node* const value = section.find(key);
  return value == nullptr ? section.where : value->where;
}

void check_pem(const Pem& pem, const std::string& name, bool needed, const Node& node, const Context& context) {
  if (!pem.text.empty() && !pem.file.empty()) {
    context.error(where(node, name), name + " and " + name + "_file are both given", "keep one");
  } else if (needed && !pem.given()) {
    context.error(node.where, "the key '" + name + "_file' is missing", "add it, or " + name + " with the PEM text");
  }
}

void check_clients(const TlsServer& tls, const Node& node, const Context& context) {
  const bool any = tls.client_auth == ClientAuth::request || tls.client_auth == ClientAuth::require_any;
  const bool required = tls.client_auth == ClientAuth::require_any || tls.client_auth == ClientAuth::require_and_verify;
  if (tls.client_ca.given() && tls.client_auth == ClientAuth::none) {
    context.error(node.where, "client_ca_file without client_auth_type has no effect",
                  "set client_auth_type to RequireAndVerifyClientCert");
  }
  if (!tls.client_allowed_sans.empty() && !required) {
    context.error(where(node, "client_allowed_sans"),
                  "client_allowed_sans without a required certificate has no effect",
                  "set client_auth_type to RequireAndVerifyClientCert");
  }
  if (tls.client_auth == ClientAuth::require_any && !tls.client_allowed_sans.empty()) {
    context.error(where(node, "client_allowed_sans"), "anybody can make a certificate with these names himself",
                  "set client_auth_type to RequireAndVerifyClientCert");
  } else if (any) {
    context.problems.warning(where(node, "client_auth_type"), "any certificate is accepted, whoever signed it",
                             "RequireAndVerifyClientCert verifies");
  } else if (tls.client_auth != ClientAuth::none && !tls.client_ca.given()) {
    context.problems.warning(node.where,
                             "without client_ca_file, certificates of all authorities this system trusts "
                             "are accepted");
  }
}

void check_tls(TlsServer& tls, const Node& node, const Context& context) {
  check_pem(tls.certificate, "cert", true, node, context);
  check_pem(tls.key, "key", true, node, context);
  check_pem(tls.client_ca, "client_ca", false, node, context);
  check_clients(tls, node, context);
  if (tls.min_version > tls.max_version) {
    context.error(where(node, "min_version"), "min_version is above max_version", "swap them");
  } else if (tls.max_version < TlsVersion::tls12) {
    context.error(where(node, "max_version"), "TLS 1.0 and 1.1 are not served", "use TLS12 or TLS13");
  } else if (tls.min_version < TlsVersion::tls12) {
    context.problems.warning(where(node, "min_version"), "TLS 1.0 and 1.1 are not served: TLS12 is the lowest");
  }
}

Type<TlsServer> tls_server() {
  return section<TlsServer>(
      {
          key("cert_file", &TlsServer::certificate, pem(true), "Certificate of the server, with its chain."),
          key("cert", &TlsServer::certificate, pem(false), "The same as text."),
          key("key_file", &TlsServer::key, pem(true), "Its private key, without a password."),
          key("key", &TlsServer::key, pem(false), "The same as text."),
          key("client_auth_type", &TlsServer::client_auth, client_auth(), "Whether clients must show a certificate."),
          key("client_ca_file", &TlsServer::client_ca, pem(true), "Authorities that sign clients' certificates."),
          key("client_ca", &TlsServer::client_ca, pem(false), "The same as text."),
          key("client_allowed_sans", &TlsServer::client_allowed_sans, list(line("a name"), "a list of names"),
              "Alternative names of which a client's certificate must have one."),
          key("min_version", &TlsServer::min_version, tls_version(), "Lowest version of TLS."),
          key("max_version", &TlsServer::max_version, tls_version(), "Highest version of TLS."),
          key("cipher_suites", &TlsServer::cipher_suites, list(cipher_suite(), "a list of cipher suites"),
              "Cipher suites, the preferred first."),
          key("prefer_server_cipher_suites", &TlsServer::prefer_server_cipher_suites, boolean(),
              "Whether the server's order of suites counts, or the client's."),
          key("curve_preferences", &TlsServer::curve_preferences,
              list(word_of({"CurveP256", "CurveP384", "CurveP521", "X25519"}, "a curve"), "a list of curves"),
              "Curves of the key exchange, the preferred first."),
      },
      check_tls);
}

/// A header whose empty value means not to send it.
Key<HttpServer::Headers> header(const std::string& name, const Type<std::string>& type) {
  return {.info = {.name = name,
                   .doc = "The header of that name.",
                   .summary = type.summary,
                   .schema = type.schema,
                   .default_value = {},
                   .keys = {},
                   .example = {}},
          .read = [name, read = type.read](const Node& node, HttpServer::Headers& out, const Context& context) {
            std::string value;
            if (node.kind != Node::Kind::scalar || !node.text.empty()) {
              read(node, value, context);
            }
            out[name] = value;
          }};
}

Type<HttpServer> http_server() {
  const auto headers = section<HttpServer::Headers>({
      header("Content-Security-Policy", line("a policy")),
      header("X-Frame-Options", word_of({"deny", "sameorigin"}, "deny or sameorigin")),
      header("X-Content-Type-Options", word_of({"nosniff"}, "nosniff")),
      header("X-XSS-Protection", line("text")),
      header("Strict-Transport-Security", line("a policy")),
  });
  return section<HttpServer>(
      {
          key("http2", &HttpServer::http2, boolean(), "Whether to serve HTTP/2."),
          key("headers", &HttpServer::headers, headers, "Headers of every response."),
      },
      [](HttpServer& http, const Node& node, const Context& context) {
        if (http.http2) {
          context.problems.warning(where(node, "http2"), "HTTP/2 is not served: clients use HTTP/1.1",
                                   "set http2: false");
        }
      });
}

/// The cost of a bcrypt hash ("$2y$10$" and 53 characters of its base 64); nothing if `text` is none.
std::optional<unsigned> bcrypt_cost(std::string_view text) {
  constexpr std::size_t kLength = 60;
  constexpr std::string_view kAlphabet = "./ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
  const bool shaped = text.size() == kLength && text.starts_with("$2") && std::string_view("aby").contains(text[2]) &&
                      text[3] == '$' && text[6] == '$' &&
                      text.find_first_not_of(kAlphabet, 7) == std::string_view::npos;
  unsigned cost = 0;
  if (!shaped || std::from_chars(&text[4], &text[6], cost).ptr != &text[6] || cost < 4 || cost > 31) {
    return std::nullopt;
  }
  return cost;
}

void read_user(const Node& name, const Node& hash, const Context& context) {
  if (name.text.contains(':')) {
    context.error(name.where, "user name " + quote(name.text) + " contains ':', where RFC 7617 ends the name",
                  "choose another name");
  }
  const auto cost = bcrypt_cost(hash.text);
  if (!cost) {
    context.error(hash.where, "the password of " + quote(name.text) + " is not a bcrypt hash",
                  "make one with htpasswd -nBC 10 '' | tr -d ':\\n'");
  } else if (*cost > kSlowBcryptCost) {
    context.problems.warning(hash.where, "bcrypt at cost " + std::to_string(*cost) + " takes seconds for a login",
                             "10 is usual");
  }
}

Type<std::map<std::string, std::string>> users() {
  Type<std::map<std::string, std::string>> type;
  type.summary = "a mapping of user names to bcrypt hashes";
  type.show = [](const auto&) { return Json(); };
  type.read = [summary = type.summary](const Node& node, std::map<std::string, std::string>& out,
                                       const Context& context) {
    if (node.kind != Node::Kind::mapping) {
      context.wrong_type(node, summary);
      return;
    }
    for (std::size_t i = 0; i < node.keys.size(); ++i) {
      const Node& name = node.keys[i];
      if (name.kind != Node::Kind::scalar) {
        context.wrong_type(name, "a user name");
      } else if (!out.emplace(name.text, node.items[i].text).second) {
        context.error(name.where, "duplicate user " + quote(name.text), "remove one");
      } else {
        read_user(name, node.items[i], context);
      }
    }
  };
  return type;
}

Type<RateLimit> rate_limit() {
  auto interval = duration(Duration::zero(), std::chrono::hours(24));
  interval.read = [read = interval.read](const Node& node, Duration& out, const Context& context) {
    if (node.text != "0") {  // zero needs no unit
      read(node, out, context);
    }
  };
  return section<RateLimit>(
      {
          key("interval", &RateLimit::interval, interval, "Time between two requests; 0: no limit."),
          key("burst", &RateLimit::burst, integer(0U, 1'000'000U, "a number"), "Requests that may come at once."),
      },
      [](RateLimit& limit, const Node& node, const Context& context) {
        if (limit.interval > Duration::zero() && limit.burst == 0) {
          context.error(where(node, "burst"), "without a burst every request is refused", "set burst to 1 or more");
        }
      });
}

const Type<WebConfig>& web_config_type() {
  static const Type<WebConfig> type = section<WebConfig>({
      key("tls_server_config", &WebConfig::tls, tls_server(), "HTTPS."),
      key("http_server_config", &WebConfig::http, http_server(), "HTTP."),
      key("basic_auth_users", &WebConfig::users, users(), "Who may log in."),
      key("rate_limit", &WebConfig::rate_limit, rate_limit(),
          "How many requests are served; beside it who was served before is, once a second or interval."),
  });
  return type;
}

void read_document(std::string_view text, WebConfig& config, Problems& problems) {
  const Source source(text);
  if (!check_source(source, problems)) {
    return;
  }
  const auto root = parse_yaml(source, problems);
  if (root && root->kind != Node::Kind::null) {
    const auto& type = web_config_type();
    type.read(*root, config, {.problems = problems, .all_keys = type.keys, .path = {}});
  }
}

void resolve(Pem& pem, const std::filesystem::path& directory) {
  if (!pem.file.empty()) {
    pem.file = directory / pem.file;  // an absolute one stays as it is
  }
}

}  // namespace

Result<WebConfig> parse_web_config(std::string_view text, const std::filesystem::path& file) {
  WebConfig config;
  Problems problems;
  read_document(text, config, problems);
  if (problems.any_errors()) {
    std::string message;
    for (const Diagnostic& problem : problems.take_errors()) {
      message += (message.empty() ? "" : "\n") + format(problem, file.string());
    }
    return fail(std::move(message));
  }
  if (config.tls) {
    for (Pem* const pem : {&config.tls->certificate, &config.tls->key, &config.tls->client_ca}) {
      resolve(*pem, file.parent_path());
    }
  }
  for (const Diagnostic& problem : problems.take_warnings()) {
    config.warnings.push_back(format(problem, file.string()));
  }
  return config;
}

Result<WebConfig> read_web_config(const std::filesystem::path& file, const ReadFile& read) {
  const auto text = read ? read(file, kMaxFileSize) : read_regular_file(file, kMaxFileSize);
  if (!text) {
    return std::unexpected(text.error().within("web configuration " + file.string()));
  }
  return parse_web_config(*text, file);
}

}  // namespace tacho::config
