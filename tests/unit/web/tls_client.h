#pragma once

#include <openssl/ssl.h>

#include <memory>
#include <optional>
#include <string>

#include "certificates.h"
#include "client.h"

namespace tacho::web::test {

struct TlsOptions {
  std::string authority;             ///< PEM; the server's certificate must be signed by it
  std::optional<Identity> identity;  ///< shown to the server
  int version = 0;                   ///< TLS1_2_VERSION …; 0: the highest
  std::string ciphers = {};          ///< up to TLS 1.2; empty: the library's
};

/// What came of a request over TLS.
struct TlsReply {
  bool shaken_hands = false;  ///< as far as the client knows
  std::string subject;        ///< common name in the server's certificate
  std::string protocol;       ///< "TLSv1.3"
  std::string cipher;
  std::string alpn;
  Reply reply;
};

TlsReply tls_get(const std::string& address, const std::string& path, const TlsOptions& options);

}  // namespace tacho::web::test
