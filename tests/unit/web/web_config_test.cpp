#include <sys/wait.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <string>

#include "bcrypt_hash.h"
#include "config/web_config_file.h"
#include "temp_dir.h"

namespace tacho::config {
namespace {

using std::chrono_literals::operator""s;

constexpr std::string_view kHash = "$2y$10$abcdefghijklmnopqrstuuABCDEFGHIJKLMNOPQRSTUVWXYZ01234";

std::string errors_of(const std::string& text) {
  const auto config = parse_web_config(text, "/etc/tacho/web.yml");
  INFO(text);
  REQUIRE_FALSE(config);
  return config.error().message;
}

WebConfig parsed(const std::string& text) {
  auto config = parse_web_config(text, "/etc/tacho/web.yml");
  INFO((config ? "" : config.error().message));
  REQUIRE(config);
  return std::move(*config);
}

TEST_CASE("An empty web configuration changes nothing") {
  const WebConfig config = parsed(GENERATE("", "# nothing\n", "{}\n"));
  CHECK_FALSE(config.tls);
  CHECK(config.users.empty());
  CHECK(config.http.headers.empty());
  CHECK_FALSE(config.rate_limit);
  CHECK(config.warnings.empty());
}

TEST_CASE("Every key of the web configuration is understood") {
  const WebConfig config = parsed(R"(tls_server_config:
  cert_file: certs/server.crt
  key_file: /keys/server.key
  client_auth_type: RequireAndVerifyClientCert
  client_ca_file: ca.crt
  client_allowed_sans: [prometheus, 10.0.0.1]
  min_version: TLS12
  max_version: TLS13
  cipher_suites: [TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256]
  prefer_server_cipher_suites: false
  curve_preferences: [X25519, CurveP256]
http_server_config:
  http2: false
  headers:
    Content-Security-Policy: default-src 'self'
    X-Frame-Options: deny
    X-Content-Type-Options: nosniff
    X-XSS-Protection: ""
    Strict-Transport-Security: max-age=31536000
basic_auth_users:
  alice: )" + std::string(kHash) + R"(
rate_limit: {interval: 1s, burst: 20}
)");
  REQUIRE(config.tls);
  CHECK(config.tls->certificate.file == "/etc/tacho/certs/server.crt");
  CHECK(config.tls->key.file == "/keys/server.key");
  CHECK(config.tls->client_auth == ClientAuth::require_and_verify);
  CHECK(config.tls->client_ca.file == "/etc/tacho/ca.crt");
  CHECK(config.tls->client_allowed_sans == std::vector<std::string>{"prometheus", "10.0.0.1"});
  CHECK(config.tls->cipher_suites.size() == 1);
  CHECK_FALSE(config.tls->prefer_server_cipher_suites);
  CHECK(config.tls->curve_preferences.size() == 2);
  CHECK(config.http.headers.size() == 5);
  CHECK(config.http.headers.at("X-XSS-Protection").empty());
  CHECK(config.users == std::map<std::string, std::string>{{"alice", std::string(kHash)}});
  REQUIRE(config.rate_limit);
  CHECK(config.rate_limit->interval == 1s);
  CHECK(config.rate_limit->burst == 20);
  CHECK(config.warnings.empty());
}

TEST_CASE("Certificates may stand in the configuration itself") {
  const WebConfig config = parsed("tls_server_config:\n  cert: |\n    PEM1\n    PEM2\n  key: PEM3\n");
  REQUIRE(config.tls);
  CHECK(config.tls->certificate.text == "PEM1\nPEM2\n");
  CHECK(config.tls->key.text == "PEM3");
}

TEST_CASE("What looks like a number is text where text is meant, as for other exporters") {
  const WebConfig config = parsed("http_server_config: {headers: {X-XSS-Protection: 1}}\n");
  CHECK(config.http.headers.at("X-XSS-Protection") == "1");
}

TEST_CASE("Go's names of client authentication are known") {
  const auto [name, expected] = GENERATE(table<const char*, ClientAuth>({
      {"NoClientCert", ClientAuth::none},
      {"RequestClientCert", ClientAuth::request},
      {"RequireAnyClientCert", ClientAuth::require_any},
      {"RequireClientCert", ClientAuth::require_any},
      {"VerifyClientCertIfGiven", ClientAuth::verify_if_given},
      {"RequireAndVerifyClientCert", ClientAuth::require_and_verify},
  }));
  const WebConfig config =
      parsed("tls_server_config: {cert_file: c, key_file: k, client_auth_type: " + std::string(name) + "}\n");
  CHECK(config.tls->client_auth == expected);
}

TEST_CASE("What is wrong is said with its place") {
  const auto [text, expected] = GENERATE(table<std::string, std::string>({
      {"tls_servr_config: {}",
       "web.yml:1:1: error: unknown key 'tls_servr_config' (did you mean 'tls_server_config'?)"},
      {"basic_auth_users: {}\nbasic_auth_users: {}", "web.yml:2:1: error: duplicate key 'basic_auth_users'"},
      {"tls_server_config:\n  cert_file: a\n  key_file: b\n  cert_flie: c",
       "web.yml:4:3: error: tls_server_config: unknown"},
      {"tls_server_config:\n  cert_file: a\n", "web.yml:2:3: error: tls_server_config: the key 'key_file' is missing"},
      {"tls_server_config:\n  key_file: a\n", "the key 'cert_file' is missing"},
      {"tls_server_config: {cert_file: [a], key_file: b}",
       "web.yml:1:32: error: tls_server_config.cert_file: expected a path"},
      {"tls_server_config: {cert_file: a, cert: b, key_file: b}", "cert and cert_file are both given"},
      {"tls_server_config: {cert_file: a, key_file: b, client_auth_type: Require}", "expected NoClientCert"},
      {"tls_server_config: {cert_file: a, key_file: b, client_ca_file: c}", "client_ca_file without client_auth_type"},
      {"tls_server_config: {cert_file: a, key_file: b, client_allowed_sans: [x]}", "client_allowed_sans without"},
      {"tls_server_config: {cert_file: a, key_file: b, client_auth_type: RequireAnyClientCert, client_allowed_sans: "
       "[x]}",
       "set client_auth_type to RequireAndVerifyClientCert"},
      {"tls_server_config: {cert_file: a, key_file: b, min_version: TLS1.2}", "expected TLS10"},
      {"tls_server_config: {cert_file: a, key_file: b, min_version: TLS13, max_version: TLS12}",
       "is above max_version"},
      {"tls_server_config: {cert_file: a, key_file: b, min_version: TLS10, max_version: TLS11}", "are not served"},
      {"tls_server_config: {cert_file: a, key_file: b, cipher_suites: [TLS_RSA_WITH_RC4_128_SHA]}", "expected TLS_AES"},
      {"tls_server_config: {cert_file: a, key_file: b, curve_preferences: [CurveP255]}", "(did you mean 'CurveP256'?)"},
      {"tls_server_config: {cert_file: a, key_file: b, prefer_server_cipher_suites: 1}", "expected true or false"},
      {"http_server_config: {headers: {X-Foo: a}}",
       "web.yml:1:32: error: http_server_config.headers: unknown key 'X-Foo'"},
      {"http_server_config: {headers: {X-Frame-Options: allow}}", "expected deny or sameorigin, not 'allow'"},
      {"http_server_config: {headers: {X-XSS-Protection: \"a\\nb\"}}", "control character"},
      {"http_server_config: {http2: maybe}", "expected true or false"},
      {"basic_auth_users: {a: secret}",
       "web.yml:1:23: error: basic_auth_users: the password of 'a' is not a bcrypt hash"},
      {"basic_auth_users: {a: }", "is not a bcrypt hash"},
      {"basic_auth_users: [a]", "expected a mapping of user names"},
      {"basic_auth_users: {'a:b': " + std::string(kHash) + "}", "contains ':'"},
      {"basic_auth_users: {a: " + std::string(kHash) + ", a: " + std::string(kHash) + "}", "duplicate user 'a'"},
      {"basic_auth_users: {a: $2x$10$" + std::string(53, 'a') + "}", "is not a bcrypt hash"},
      {"basic_auth_users: {a: $2y$32$" + std::string(53, 'a') + "}", "is not a bcrypt hash"},
      {"basic_auth_users: {a: $2y$10$" + std::string(52, 'a') + "}", "is not a bcrypt hash"},
      {"rate_limit: {interval: 1, burst: 1}", "has no unit"},
      {"rate_limit: {interval: 1s, burst: -1}", "rate_limit.burst"},
      {"rate_limit: {interval: 1s}", "every request is refused"},
      {"a: [", "web.yml:1:"},
      {"- a", "expected a mapping"},
      {"text", "expected a mapping"},
      {"a: 1\n---\nb: 2\n", "second document"},
      {"\xff\xfe", "not UTF-8"},
  }));
  const std::string message = errors_of(text);
  INFO(message);
  CHECK(message.starts_with("/etc/tacho/web.yml:"));
  CHECK(message.contains(expected));
  CHECK_FALSE(message.contains("secret"));
}

TEST_CASE("All that is wrong is said at once") {
  const std::string message = errors_of("a: 1\nb: 2\nbasic_auth_users: {u: x}\n");
  CHECK(std::ranges::count(message, '\n') == 2);
}

TEST_CASE("What is accepted but not done is said") {
  const auto [text, expected] = GENERATE(table<std::string, std::string>({
      {"http_server_config: {http2: true}", "web.yml:1:29: warning: HTTP/2 is not served"},
      {"tls_server_config: {cert_file: a, key_file: b, min_version: TLS10}", "TLS12 is the lowest"},
      {"tls_server_config: {cert_file: a, key_file: b, client_auth_type: RequestClientCert}", "any certificate"},
      {"tls_server_config: {cert_file: a, key_file: b, client_auth_type: VerifyClientCertIfGiven}", "all authorities"},
      {"basic_auth_users: {a: $2y$17$" + std::string(53, 'a') + "}", "cost 17 takes seconds"},
  }));
  const WebConfig config = parsed(text);
  REQUIRE(config.warnings.size() == 1);
  CHECK(config.warnings[0].contains(expected));
}

TEST_CASE("An interval of zero limits nothing") {
  CHECK(parsed("rate_limit: {interval: 0, burst: 0}").rate_limit->interval == Duration::zero());
}

TEST_CASE("A file that cannot be read is an error that names it") {
  CHECK(read_web_config("/does/not/exist.yml").error().message.contains("/does/not/exist.yml"));
  CHECK_FALSE(read_web_config("/"));
}

/// What promtool says of a file: whether it accepts it.
bool promtool_accepts(const std::filesystem::path& file) {
  const std::string command = "promtool check web-config '" + file.string() + "' >/dev/null 2>&1";
  const int status = std::system(command.c_str());
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST_CASE("promtool agrees on what is valid") {
  if (std::system("command -v promtool >/dev/null") != 0) {
    WARN("skipped: promtool is not installed (Debian package prometheus)");
    return;
  }
  const web::test::TempDir dir;
  const std::string hash = web::test::bcrypt_hash("secret");
  const auto text = GENERATE_COPY(
      std::string(""), "basic_auth_users: {a: " + hash + "}\n", std::string("basic_auth_users: {a: b}\n"),
      std::string("unknown: 1\n"), std::string("http_server_config: {headers: {X-Frame-Options: deny}}\n"),
      std::string("http_server_config: {headers: {X-Frame-Options: no}}\n"),
      std::string("http_server_config: {headers: {X-Other: no}}\n"),
      std::string("tls_server_config: {cert_file: a.crt}\n"),
      std::string("tls_server_config: {cert_file: a.crt, key_file: b, min_version: TLS14}\n"),
      std::string("basic_auth_users: {}\nbasic_auth_users: {}\n"), std::string("- a\n"), std::string("{}\n"),
      std::string("basic_auth_users: [a]\n"), std::string("basic_auth_users: {a: {}}\n"),
      std::string("basic_auth_users: {b: " + hash + ", a: " + hash + "}\n"),
      std::string("http_server_config: {http2: true}\n"), std::string("http_server_config: {http2: maybe}\n"),
      std::string("http_server_config: {http3: true}\n"), std::string("http_server_config: {headers: [a]}\n"),
      std::string("http_server_config: {headers: {X-Content-Type-Options: nosniff}}\n"),
      std::string("http_server_config: {headers: {Strict-Transport-Security: max-age=1}}\n"),
      std::string("tls_server_config: {key_file: a.key}\n"), std::string("tls_server_config: {cert_file: [a]}\n"),
      std::string("tls_server_config: {cert_file: a.crt, key_file: b, unknown: c}\n"),
      std::string("tls_server_config: {cert_file: a.crt, key_file: b, client_auth_type: Sometimes}\n"),
      std::string("tls_server_config: {cert_file: a.crt, key_file: b, cipher_suites: [TLS_UNKNOWN]}\n"),
      std::string("tls_server_config: {cert_file: a.crt, key_file: b, curve_preferences: [P-1]}\n"),
      std::string("\"unclosed\n"), std::string("a: b: c\n"), std::string("\tx: 1\n"));
  const auto file = dir.write("web.yml", text);
  INFO(text);
  CHECK(promtool_accepts(file) == read_web_config(file).has_value());
}

TEST_CASE("A web configuration that is no file, or no end, is refused at once") {
  for (const char* const path : {"/dev/zero", "/dev/null", "/proc/self/fd", "/nonexistent/web.yml"}) {
    INFO(path);
    const auto read = config::read_web_config(path);
    REQUIRE_FALSE(read);
    CHECK(read.error().message.contains(path));
  }
}

}  // namespace
}  // namespace tacho::config
