#include "web/tls.h"

#include <openssl/err.h>
#include <openssl/pem.h>

#include <array>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "web/client_names.h"
#include "web/openssl_objects.h"

namespace tacho::web {
namespace {

constexpr std::size_t kMaxPem = std::size_t{1} << 20;
constexpr std::size_t kMaxAuthorities = std::size_t{4} << 20;
/// Up to TLS 1.2, where the configuration names none: forward secrecy and authenticated encryption, as with Go.
constexpr std::string_view kOlderSuites = "ECDHE+AESGCM:ECDHE+CHACHA20";

using config::ClientAuth;
using config::Pem;
using config::TlsServer;

/// "what: OpenSSL's reason".
std::unexpected<Error> ssl_failure(const std::string& what) {
  const char* const reason = ERR_reason_error_string(ERR_get_error());
  ERR_clear_error();
  return fail(reason == nullptr ? what : what + ": " + reason);
}

std::string place(const Pem& pem, const std::string& key) {
  return pem.file.empty() ? key + " of the web configuration" : key + "_file " + pem.file.string();
}

Result<Bio> open_pem(const Pem& pem, const std::string& where, const Files& files) {
  if (pem.file.empty()) {
    return Bio(BIO_new_mem_buf(pem.text.data(), static_cast<int>(pem.text.size())));
  }
  const auto text = files.read(pem.file, kMaxPem);
  if (!text) {
    return std::unexpected(text.error().within(where));
  }
  Bio bio(BIO_new(BIO_s_mem()));
  if (!bio || BIO_write(bio.get(), text->data(), static_cast<int>(text->size())) < 0) {
    return ssl_failure("cannot keep " + where);
  }
  BIO_set_mem_eof_return(bio.get(), 0);
  return bio;
}

/// Without this OpenSSL asks on the terminal for the password of an encrypted key.
int no_password(char* /*buffer*/, int /*size*/, int /*writing*/, void* /*data*/) {
  return -1;
}

Certificate next_certificate(BIO* bio) {
  return Certificate(PEM_read_bio_X509(bio, nullptr, no_password, nullptr));
}

/// Whether reading ended at the end of the text and not at something malformed.
bool at_end() {
  const bool good = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
  if (good) {
    ERR_clear_error();
  }
  return good;
}

Result<void> use_certificate(SSL_CTX* context, const TlsServer& tls, const Files& files) {
  const std::string where = place(tls.certificate, "cert");
  auto bio = open_pem(tls.certificate, where, files);
  if (!bio) {
    return std::unexpected(bio.error());
  }
  const Certificate leaf = next_certificate(bio->get());
  if (!leaf) {
    return ssl_failure(where + " holds no PEM certificate");
  }
  if (SSL_CTX_use_certificate(context, leaf.get()) != 1) {
    return ssl_failure(where + " cannot be used");
  }
  while (const Certificate link = next_certificate(bio->get())) {
    if (SSL_CTX_add1_chain_cert(context, link.get()) != 1) {
      return ssl_failure(where + ": the chain cannot be used");
    }
  }
  if (!at_end()) {
    return ssl_failure(where + ": a certificate of the chain is malformed");
  }
  return {};
}

Result<void> use_key(SSL_CTX* context, const TlsServer& tls, const Files& files) {
  const std::string where = place(tls.key, "key");
  auto bio = open_pem(tls.key, where, files);
  if (!bio) {
    return std::unexpected(bio.error());
  }
  const PrivateKey key(PEM_read_bio_PrivateKey(bio->get(), nullptr, no_password, nullptr));
  if (!key) {
    return ssl_failure(where + " holds no PEM private key without password");
  }
  if (SSL_CTX_use_PrivateKey(context, key.get()) != 1 || SSL_CTX_check_private_key(context) != 1) {
    return ssl_failure(where + " does not belong to the certificate in " + place(tls.certificate, "cert"));
  }
  return {};
}

Result<void> trust_system(SSL_CTX* context) {
  return SSL_CTX_set_default_verify_paths(context) == 1 ? Result<void>{} : ssl_failure("the system's authorities");
}

/// As OpenSSL does on disk, which takes what it can read.
Result<void> trust_system(SSL_CTX* context, const Files& files) {
  const auto text = files.read(system_authorities_file(), kMaxAuthorities);
  if (!text) {
    return {};
  }
  const Bio bio(BIO_new_mem_buf(text->data(), static_cast<int>(text->size())));
  while (const Certificate authority = next_certificate(bio.get())) {
    X509_STORE_add_cert(SSL_CTX_get_cert_store(context), authority.get());
  }
  ERR_clear_error();
  return {};
}

Result<void> trust_authorities(SSL_CTX* context, const TlsServer& tls, const Files& files) {
  if (!tls.client_ca.given()) {
    return &files == &Files::on_disk() ? trust_system(context) : trust_system(context, files);
  }
  const std::string where = place(tls.client_ca, "client_ca");
  auto bio = open_pem(tls.client_ca, where, files);
  if (!bio) {
    return std::unexpected(bio.error());
  }
  std::size_t count = 0;
  while (const Certificate authority = next_certificate(bio->get())) {
    if (X509_STORE_add_cert(SSL_CTX_get_cert_store(context), authority.get()) != 1 ||
        SSL_CTX_add_client_CA(context, authority.get()) != 1) {
      return ssl_failure(where + " cannot be used");
    }
    ++count;
  }
  if (!at_end() || count == 0) {
    return ssl_failure(where + (count == 0 ? " holds no PEM certificate" : ": a certificate is malformed"));
  }
  return {};
}

Result<void> ask_clients(SSL_CTX* context, const TlsServer& tls, const Files& files) {
  if (tls.client_auth == ClientAuth::none) {
    return {};
  }
  const bool verified =
      tls.client_auth == ClientAuth::verify_if_given || tls.client_auth == ClientAuth::require_and_verify;
  const bool required = tls.client_auth == ClientAuth::require_any || tls.client_auth == ClientAuth::require_and_verify;
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER | (required ? SSL_VERIFY_FAIL_IF_NO_PEER_CERT : 0), nullptr);
  check_clients(context, {.verify_chain = verified, .allowed_names = tls.client_allowed_sans});
  return verified ? trust_authorities(context, tls, files) : Result<void>{};
}

/// The two lists OpenSSL keeps: of TLS 1.3, and of what came before.
Result<void> choose_ciphers(SSL_CTX* context, const TlsServer& tls, const Files& /*files*/) {
  std::string modern;
  std::string older;
  for (const std::string& suite : tls.cipher_suites) {
    const bool is_modern = !suite.contains("_WITH_");
    const char* const name = is_modern ? suite.c_str() : OPENSSL_cipher_name(suite.c_str());
    std::string& list = is_modern ? modern : older;
    list += (list.empty() ? "" : ":") + std::string(name);
  }
  if (older.empty()) {
    older = kOlderSuites;
  }
  if ((!modern.empty() && SSL_CTX_set_ciphersuites(context, modern.c_str()) != 1) ||
      SSL_CTX_set_cipher_list(context, older.c_str()) != 1) {
    return ssl_failure("cipher_suites: the TLS library offers none of them");
  }
  return {};
}

Result<void> choose_curves(SSL_CTX* context, const TlsServer& tls, const Files& /*files*/) {
  std::string groups;
  for (const std::string& curve : tls.curve_preferences) {
    const std::string group = curve.starts_with("CurveP") ? "P-" + curve.substr(6) : curve;
    groups += (groups.empty() ? "" : ":") + group;
  }
  if (!groups.empty() && SSL_CTX_set1_groups_list(context, groups.c_str()) != 1) {
    return ssl_failure("curve_preferences: the TLS library refuses " + groups);
  }
  return {};
}

int select_http1(SSL* /*ssl*/, const unsigned char** out, unsigned char* out_size, const unsigned char* in,
                 unsigned in_size, void* /*data*/) {
  static constexpr std::array<unsigned char, 9> kOffer{8, 'h', 't', 't', 'p', '/', '1', '.', '1'};
  unsigned char* chosen = nullptr;
  const int result = SSL_select_next_proto(&chosen, out_size, kOffer.data(), kOffer.size(), in, in_size);
  *out = chosen;
  // RFC 7301 §3.2 wants a refusal where nothing fits; clients of old name other things and speak HTTP/1.1 all the same.
  return result == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_NOACK;
}

void set_options(SSL_CTX* context, const TlsServer& tls) {
  const bool only_newest = tls.min_version == config::TlsVersion::tls13;
  const bool not_newest = tls.max_version == config::TlsVersion::tls12;
  SSL_CTX_set_min_proto_version(context, only_newest ? TLS1_3_VERSION : TLS1_2_VERSION);
  SSL_CTX_set_max_proto_version(context, not_newest ? TLS1_2_VERSION : TLS1_3_VERSION);
  SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_NO_TICKET |
                                   (tls.prefer_server_cipher_suites ? SSL_OP_CIPHER_SERVER_PREFERENCE : 0));
  SSL_CTX_set_num_tickets(context, 0);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  // civetweb takes a partial write for progress and starts its timeout anew.
  SSL_CTX_set_mode(context,
                   SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_alpn_select_cb(context, select_http1, nullptr);
}

}  // namespace

std::filesystem::path system_authorities_file() {
  const char* const chosen = std::getenv(X509_get_default_cert_file_env());
  return chosen != nullptr ? chosen : X509_get_default_cert_file();
}

std::filesystem::path system_authorities_directory() {
  const char* const chosen = std::getenv(X509_get_default_cert_dir_env());
  return chosen != nullptr ? chosen : X509_get_default_cert_dir();
}

Result<SslContext> make_ssl_context(const TlsServer& tls, const Files& files) {
  ERR_clear_error();
  SslContext context(SSL_CTX_new(TLS_server_method()));
  if (!context) {
    return ssl_failure("cannot set up TLS");
  }
  set_options(context.get(), tls);
  for (const auto step : {use_certificate, use_key, ask_clients, choose_ciphers, choose_curves}) {
    if (auto done = step(context.get(), tls, files); !done) {
      return std::unexpected(done.error().within("tls_server_config"));
    }
  }
  return context;
}

}  // namespace tacho::web
