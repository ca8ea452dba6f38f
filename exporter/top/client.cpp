#include "top/client.h"

#include <openssl/bio.h>
#include <openssl/conf.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/http.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>

#include <array>
#include <charconv>
#include <optional>
#include <string_view>
#include <utility>

#include "base/utf8.h"
#include "top/connect.h"

namespace tacho::top {
namespace {

constexpr std::size_t kLargestAnswer = std::size_t{64} << 20;
constexpr int kBuffer = 16 << 10;

struct BioCloser {
  void operator()(BIO* bio) const { BIO_free_all(bio); }
};
using Bio = std::unique_ptr<BIO, BioCloser>;

struct HeadersCloser {
  void operator()(STACK_OF(CONF_VALUE) * headers) const { sk_CONF_VALUE_pop_free(headers, X509V3_conf_free); }
};
using Headers = std::unique_ptr<STACK_OF(CONF_VALUE), HeadersCloser>;

/// What OpenSSL has queued as errors, the first reason with its details; empties the queue.
std::string openssl_reason() {
  std::string text;
  const char* data = nullptr;
  int flags = 0;
  while (const unsigned long code = ERR_get_error_all(nullptr, nullptr, nullptr, &data, &flags)) {
    const char* reason = ERR_reason_error_string(code);
    const std::string one = std::string(reason == nullptr ? "" : reason) +
                            ((flags & ERR_TXT_STRING) != 0 && *data != '\0' ? std::string(" (") + data + ")" : "");
    text += (text.empty() ? "" : "; ") + one;
  }
  return printable(text);  // it quotes the server
}

std::string base64(const std::string& text) {
  std::string out((text.size() + 2) / 3 * 4 + 1, '\0');
  const int length =
      EVP_EncodeBlock(reinterpret_cast<unsigned char*>(out.data()), reinterpret_cast<const unsigned char*>(text.data()),
                      static_cast<int>(text.size()));
  out.resize(static_cast<std::size_t>(length));
  return out;
}

Headers headers_of(const Url& url) {
  STACK_OF(CONF_VALUE)* headers = nullptr;
  if (!url.user.empty()) {
    X509V3_add_value("Authorization", ("Basic " + base64(url.user + ":" + url.password)).c_str(), &headers);
  }
  return Headers(headers);
}

Result<std::string> read_all(BIO* bio) {
  std::string body;
  std::array<char, kBuffer> part{};
  for (int count = 0; (count = BIO_read(bio, part.data(), static_cast<int>(part.size()))) > 0;) {
    body.append(part.data(), static_cast<std::size_t>(count));
    if (body.size() > kLargestAnswer) {
      return fail("the answer is larger than " + std::to_string(kLargestAnswer) + " bytes: is it a tacho?");
    }
  }
  return body;
}

/// The status in OpenSSL's message ("code=401, reason=…"); 0: none.
int status_in(const std::string& reason) {
  constexpr std::string_view kBefore = "code=";
  int status = 0;
  if (const std::size_t at = reason.find(kBefore); at != std::string::npos) {
    std::from_chars(reason.data() + at + kBefore.size(), reason.data() + reason.size(), status);
  }
  return status;
}

/// What can be done about an answer that is none.
std::string remedy(const std::string& reason, int status) {
  if (status == 401) {
    return "it asks for a user and a password (or for others): --url http://USER:PASSWORD@HOST:PORT, or "
           "--password-file";
  }
  if (status == 404) {
    return "nothing of tacho is served there: is it another program, or an older tacho?";
  }
  if (status == 429 || status == 503) {
    return "it is busy; ask less often, or raise its rate_limit";
  }
  if (reason.find("certificate verify failed") != std::string::npos) {
    return "its certificate is not trusted: name the authority's certificate with --ca-file (" + reason + ")";
  }
  if (reason.find("timeout") != std::string::npos) {
    return "no answer (" + reason + ")";
  }
  return reason.empty() ? "it does not answer, or not in HTTP: https needs https:// in --url" : reason;
}

}  // namespace

/// The client's side of TLS.
class Client::Tls {
 public:
  static Result<std::unique_ptr<Tls>> make(const Manners& manners) {
    ERR_clear_error();
    std::unique_ptr<Tls> tls(new Tls(SSL_CTX_new(TLS_client_method())));
    SSL_CTX* context = tls->context_.get();
    if (context == nullptr) {
      return fail("TLS: " + openssl_reason());
    }
    SSL_CTX_set_verify(context, manners.any_certificate ? SSL_VERIFY_NONE : SSL_VERIFY_PEER, nullptr);
    SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
    const std::string& ca_file = manners.ca_file;
    const bool loaded = ca_file.empty() ? SSL_CTX_set_default_verify_paths(context) == 1
                                        : SSL_CTX_load_verify_file(context, ca_file.c_str()) == 1;
    if (!loaded) {
      return fail("--ca-file: " + ca_file + ": no certificates in PEM can be read from it (" + openssl_reason() + ")");
    }
    return tls;
  }

  /// A BIO that shakes hands with the first read or write.
  [[nodiscard]] Bio wrap(Bio socket, const std::string& host) const {
    Bio layer(BIO_new_ssl(context_.get(), 1));
    SSL* ssl = nullptr;
    BIO_get_ssl(layer.get(), &ssl);
    // An address is compared with the addresses of the certificate, and is no name for SNI (RFC 6066 §3).
    if (X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host.c_str()) != 1) {
      SSL_set1_host(ssl, host.c_str());
      // The macro SSL_set_tlsext_host_name, without its cast.
      SSL_ctrl(ssl, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name, const_cast<char*>(host.c_str()));
    }
    ERR_clear_error();
    return Bio(BIO_push(layer.release(), socket.release()));
  }

 private:
  struct Closer {
    void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
  };
  explicit Tls(SSL_CTX* context) : context_(context) {}
  std::unique_ptr<SSL_CTX, Closer> context_;
};

Client::Client(Url url, std::unique_ptr<Tls> tls, std::chrono::seconds patience)
    : url_(std::move(url)), tls_(std::move(tls)), patience_(patience) {}
Client::~Client() = default;

Result<std::unique_ptr<Client>> Client::open(Url url, const Manners& manners) {
  std::unique_ptr<Tls> tls;
  if (url.tls) {
    auto made = Tls::make(manners);
    if (!made) {
      return std::unexpected(made.error());
    }
    tls = std::move(*made);
  }
  return std::unique_ptr<Client>(new Client(std::move(url), std::move(tls), manners.patience));
}

void Client::cancel() {
  const std::lock_guard lock(mutex_);
  cancelled_ = true;
  if (socket_ >= 0) {
    ::shutdown(socket_, SHUT_RDWR);
  }
}

Error Client::within(const Error& error) const {
  const bool nobody = error.code == ECONNREFUSED || error.code == ENOENT;
  return {url_.text() + ": " + error.message +
              (nobody ? ": is tacho running there? --url names another place, such as http://HOST:9435" : ""),
          error.code};
}

Result<std::string> Client::get(const std::string& path_and_query) {
  const auto created = [this](int socket) {
    const std::lock_guard lock(mutex_);
    socket_ = socket;
    return !cancelled_;
  };
  struct Forget {
    Client& client;
    ~Forget() {
      const std::lock_guard lock(client.mutex_);
      client.socket_ = -1;
    }
  };
  auto socket = connect_to(url_, patience_, created);
  const Forget forget{*this};  // before the socket is closed
  if (!socket) {
    return std::unexpected(within(socket.error()));
  }
  ERR_clear_error();
  Bio bio(BIO_new_socket(socket->get(), BIO_NOCLOSE));
  if (tls_) {
    bio = tls_->wrap(std::move(bio), url_.host);
  }
  const Headers headers = headers_of(url_);
  // The BIO is connected, which OpenSSL takes as given if it is named for reading too. TLS is in it already, so to
  // OpenSSL's client it is plain HTTP.
  const std::string name = url_.host.empty() ? "localhost" : url_.host;
  const std::string host = name.find(':') == std::string::npos ? name : "[" + name + "]";
  const std::string address = "http://" + host + ":" + url_.port + url_.prefix + path_and_query;
  const Bio answer(OSSL_HTTP_get(address.c_str(), nullptr, nullptr, bio.get(), bio.get(), nullptr, nullptr, kBuffer,
                                 headers.get(), nullptr, 0, kLargestAnswer, static_cast<int>(patience_.count())));
  refused_with_ = 0;
  if (!answer) {
    const std::string reason = openssl_reason();
    refused_with_ = status_in(reason);
    return fail(url_.text() + ": " + remedy(reason, refused_with_));
  }
  auto body = read_all(answer.get());
  return body ? body : std::unexpected(within(body.error()));
}

}  // namespace tacho::top
