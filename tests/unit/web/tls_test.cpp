#include "web/tls.h"

#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <list>

#include "running_server.h"
#include "temp_dir.h"
#include "tls_client.h"

namespace tacho::web {
namespace {

using std::chrono_literals::operator""ms;
using test::Authority;
using test::Client;
using test::Identity;
using test::RunningServer;
using test::tls_get;
using test::TlsReply;

/// A server with a certificate, and the rest of tls_server_config as given.
struct Fixture {
  test::TempDir dir;
  Authority authority{"test authority"};
  Authority stranger{"another authority"};

  std::string configure(const std::string& more = {}) const {
    install(authority.issue("first", "IP:127.0.0.1"));
    dir.write("ca.crt", authority.certificate());
    return dir.write("web.yml", "tls_server_config:\n  cert_file: server.crt\n  key_file: server.key\n" + more)
        .string();
  }

  void install(const Identity& identity) const {
    dir.write("server.key", identity.key);
    dir.write("server.crt", identity.certificate);
  }

  [[nodiscard]] Identity client(const std::string& names = "DNS:prometheus") const {
    return authority.issue("client", names, true);
  }

  [[nodiscard]] TlsReply scrape(const RunningServer& server, const std::optional<Identity>& identity = {},
                                int version = 0) const {
    return tls_get(server.address(), "/metrics",
                   {.authority = authority.certificate(), .identity = identity, .version = version});
  }
};

std::vector<Route> pages() {
  auto routes = test::one_page();
  routes.push_back(test::get_route("/large", [](const Request&) {
    std::string body;
    body.resize(20'000'000, 'x');
    return test::text_response(std::move(body));
  }));
  routes.push_back(test::get_route(
      "/known", [](const Request& request) { return test::text_response(request.authenticated ? "yes" : "no"); }));
  return routes;
}

TEST_CASE_METHOD(Fixture, "TLS is served, with HTTP/1.1 negotiated") {
  const RunningServer server(pages(), configure());
  const TlsReply reply = scrape(server);
  CHECK(reply.subject == "first");
  CHECK(reply.protocol == "TLSv1.3");
  CHECK(reply.alpn == "http/1.1");
  CHECK(reply.reply.body == "up 1\n");
  const TlsReply older = scrape(server, {}, TLS1_2_VERSION);
  CHECK(older.protocol == "TLSv1.2");
  CHECK(older.reply.body == "up 1\n");
  CHECK_FALSE(scrape(server, {}, TLS1_1_VERSION).shaken_hands);
  CHECK(tls_get(server.address(), "/large", {.authority = authority.certificate(), .identity = {}}).reply.body.size() ==
        20'000'000);
}

TEST_CASE_METHOD(Fixture, "Plain HTTP on a TLS port is told so") {
  const RunningServer server(pages(), configure());
  const auto reply = test::get(server.address(), "/metrics");
  CHECK(reply.status == 400);
  CHECK(reply.body.contains("HTTPS"));
}

TEST_CASE_METHOD(Fixture, "Versions, suites and curves are those of the configuration") {
  SECTION("newest only") {
    const RunningServer server(pages(), configure("  min_version: TLS13\n"));
    CHECK(scrape(server).reply.status == 200);
    CHECK_FALSE(scrape(server, {}, TLS1_2_VERSION).shaken_hands);
  }
  SECTION("older only") {
    const RunningServer server(
        pages(), configure("  max_version: TLS12\n  cipher_suites: [TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256]\n"
                           "  curve_preferences: [CurveP384]\n"));
    const TlsReply reply = scrape(server);
    CHECK(reply.protocol == "TLSv1.2");
    CHECK(reply.cipher == "ECDHE-ECDSA-CHACHA20-POLY1305");
    CHECK(reply.reply.status == 200);
  }
  SECTION("without forward secrecy or authenticated encryption: none") {
    const RunningServer server(pages(), configure("  max_version: TLS12\n"));
    CHECK(scrape(server).cipher.starts_with("ECDHE-"));
    const auto [cipher, served] = GENERATE(
        table<std::string, bool>({{"ECDHE-ECDSA-AES128-SHA", false}, {"ECDHE-ECDSA-AES128-GCM-SHA256", true}}));
    INFO(cipher);
    CHECK(tls_get(server.address(), "/metrics",
                  {.authority = authority.certificate(), .identity = {}, .version = TLS1_2_VERSION, .ciphers = cipher})
              .shaken_hands == served);
  }
  SECTION("a suite of TLS 1.3") {
    const RunningServer server(pages(), configure("  cipher_suites: [TLS_AES_128_GCM_SHA256]\n"));
    CHECK(scrape(server).cipher == "TLS_AES_128_GCM_SHA256");
  }
}

TEST_CASE_METHOD(Fixture, "A changed certificate is shown to the next connection") {
  RunningServer server(pages(), configure());
  CHECK(scrape(server).subject == "first");
  install(authority.issue("second", "IP:127.0.0.1"));
  CHECK(scrape(server).subject == "second");
  SECTION("a broken one is not") {
    dir.write("server.crt", "garbage");
    CHECK(scrape(server).subject == "second");
    install(authority.issue("third", "IP:127.0.0.1"));
    CHECK(scrape(server).subject == "third");
    CHECK(server.log().contains("server.crt holds no PEM certificate"));
  }
  SECTION("TLS is not switched off by a change") {
    dir.write("web.yml", "rate_limit: {interval: 1s, burst: 5}\n");
    CHECK(scrape(server).subject == "second");
    CHECK(server.log().contains("restart"));
  }
}

/// Whether a client without certificate, with one of the right authority, and with one of another is served.
struct Served {
  bool without, right, foreign;
  bool operator==(const Served&) const = default;
};

TEST_CASE_METHOD(Fixture, "Client certificates are asked for as configured") {
  const auto [type, expected] = GENERATE(table<std::string, Served>({
      {"NoClientCert", {true, true, true}},
      {"RequestClientCert", {true, true, true}},
      {"RequireAnyClientCert", {false, true, true}},
      {"VerifyClientCertIfGiven", {true, true, false}},
      {"RequireAndVerifyClientCert", {false, true, false}},
  }));
  const bool asks = type != "NoClientCert";
  const RunningServer server(
      pages(), configure("  client_auth_type: " + type + "\n" + (asks ? "  client_ca_file: ca.crt\n" : "")));
  const int version = GENERATE(TLS1_2_VERSION, TLS1_3_VERSION);
  const Served served{.without = scrape(server, {}, version).reply.status == 200,
                      .right = scrape(server, client(), version).reply.status == 200,
                      .foreign = scrape(server, stranger.issue("x", "DNS:x", true), version).reply.status == 200};
  INFO(type << ": " << served.without << served.right << served.foreign);
  CHECK((served == expected));
}

TEST_CASE_METHOD(Fixture, "A client is known by a certificate that is verified: others it makes itself") {
  const auto [type, known] = GENERATE(table<std::string, bool>({
      {"NoClientCert", false},
      {"RequestClientCert", false},
      {"RequireAnyClientCert", false},
      {"VerifyClientCertIfGiven", true},
      {"RequireAndVerifyClientCert", true},
  }));
  CAPTURE(type);
  const std::string authorities = type == "NoClientCert" ? "" : "  client_ca_file: ca.crt\n";
  const RunningServer server(pages(), configure("  client_auth_type: " + type + "\n" + authorities));
  const auto asked_by = [&](const std::optional<Identity>& identity) {
    return tls_get(server.address(), "/known", {.authority = authority.certificate(), .identity = identity}).reply.body;
  };
  CHECK(asked_by(client()) == (known ? "yes" : "no"));
  CHECK(asked_by(stranger.issue("x", "DNS:x", true)) != "yes");
  CHECK(asked_by({}) != "yes");
}

TEST_CASE_METHOD(Fixture, "A client certificate for another purpose or time is refused") {
  const RunningServer server(pages(),
                             configure("  client_auth_type: RequireAndVerifyClientCert\n  client_ca_file: ca.crt\n"));
  CHECK(scrape(server, authority.issue("a server", "DNS:prometheus", false)).reply.status == 0);
  CHECK(scrape(server, authority.issue("expired", "DNS:prometheus", true, -1)).reply.status == 0);
  CHECK(scrape(server, client()).reply.status == 200);
}

TEST_CASE_METHOD(Fixture, "A client needs one of the allowed names") {
  const std::string type = "RequireAndVerifyClientCert\n  client_ca_file: ca.crt";
  const RunningServer server(
      pages(), configure("  client_auth_type: " + type +
                         "\n  client_allowed_sans: [prometheus, 10.0.0.1, 'fd00::1', a@b.example, 'spiffe://x/y']\n"));
  const auto status = [&](const std::string& names) { return scrape(server, client(names)).reply.status; };
  CHECK(status("DNS:other,DNS:prometheus") == 200);
  CHECK(status("IP:10.0.0.1") == 200);
  CHECK(status("IP:fd00::1") == 200);
  CHECK(status("email:a@b.example") == 200);
  CHECK(status("URI:spiffe://x/y") == 200);
  CHECK(status("DNS:prometheus.evil.example") == 0);
  CHECK(status("DNS:*") == 0);
  CHECK(status("IP:10.0.0.2") == 0);
}

TEST_CASE_METHOD(Fixture, "TLS clients that stall do not delay a scrape", "[slow]") {
  RunningServer server(pages(), configure());
  // A whole record that says ClientHello and is none would end in an alert: this is the header of a real one, so that
  // the first half waits in the gate; the second half of the crowd has sent nothing.
  const std::string start("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11);
  std::list<Client> crowd;
  for (int i = 0; i < 100; ++i) {
    crowd.emplace_back(server.address()).send(i % 2 == 0 ? start : "");
  }
  CHECK(test::prompt([&] { return scrape(server).reply.body == "up 1\n"; }));
  const auto begin = std::chrono::steady_clock::now();
  server.stop();
  CHECK(test::since(begin) < 4000ms);
}

TEST_CASE_METHOD(Fixture, "Certificates that cannot be used are errors that name the file") {
  const auto problem = [&](const std::string& config) {
    Liveness liveness;
    const auto started = Server::start({.listen_addresses = {"127.0.0.1:0"}, .web_config_file = config}, {}, liveness);
    REQUIRE_FALSE(started);
    return started.error().message;
  };
  const std::string config = configure("  client_auth_type: RequireAndVerifyClientCert\n  client_ca_file: ca.crt\n");
  SECTION("missing") {
    std::filesystem::remove(dir / "server.crt");
    CHECK(problem(config).contains((dir / "server.crt").string() + ": cannot open the file: No such file"));
  }
  SECTION("a directory") {
    std::filesystem::remove(dir / "server.crt");
    std::filesystem::create_directory(dir / "server.crt");
    CHECK(problem(config).contains("cert_file " + (dir / "server.crt").string()));
  }
  SECTION("a pipe") {
    std::filesystem::remove(dir / "server.crt");
    REQUIRE(::mkfifo((dir / "server.crt").c_str(), 0600) == 0);
    CHECK(problem(config).contains("server.crt: it is no regular file"));
  }
  SECTION("empty") {
    dir.write("server.crt", "");
    CHECK(problem(config).contains("server.crt holds no PEM certificate"));
  }
  SECTION("a chain with something malformed") {
    const Identity identity = authority.issue("x", "IP:127.0.0.1");
    install({.certificate = identity.certificate + "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
             .key = identity.key});
    CHECK(problem(config).contains("malformed"));
  }
  SECTION("a key that is none") {
    dir.write("server.key", "x");
    CHECK(problem(config).contains("server.key holds no PEM private key"));
  }
  SECTION("a key of another certificate") {
    dir.write("server.key", authority.issue("x", "DNS:x").key);
    CHECK(problem(config).contains("server.key does not belong to the certificate"));
  }
  SECTION("an authority that is none") {
    dir.write("ca.crt", "x");
    CHECK(problem(config).contains("ca.crt holds no PEM certificate"));
  }
}

TEST_CASE_METHOD(Fixture, "Certificates in the configuration itself are used") {
  const Identity identity = authority.issue("inline", "IP:127.0.0.1");
  const auto block = [](const std::string& key, const std::string& pem) {
    std::string text = "  " + key + ": |\n    ";
    for (const char c : pem) {
      text += c;
      text += c == '\n' ? "    " : "";
    }
    return text + '\n';
  };
  const auto config =
      dir.write("web.yml", "tls_server_config:\n" + block("cert", identity.certificate) + block("key", identity.key));
  const RunningServer server(pages(), config);
  CHECK(scrape(server).subject == "inline");
}

}  // namespace
}  // namespace tacho::web
