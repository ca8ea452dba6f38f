#pragma once

#include <openssl/ssl.h>

#include <string>
#include <vector>

namespace tacho::web {

struct ClientRules {
  bool verify_chain = true;                ///< up to a trusted authority, for client use, in its time
  std::vector<std::string> allowed_names;  ///< empty: any
};

/// Makes the handshake accept only client certificates that satisfy the rules. Whether a client must show one at all is
/// set by SSL_CTX_set_verify. The names are compared with the certificate's subject alternative names of type DNS, IP
/// address, e-mail and URI, byte by byte.
void check_clients(SSL_CTX* context, ClientRules rules);

/// Whether the context of a connection has clients' certificates verified; otherwise anybody makes one for himself.
bool verifies_clients(const SSL* ssl);

}  // namespace tacho::web
