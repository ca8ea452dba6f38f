#pragma once

#include <string>

#include "certificates.h"
#include "temp_dir.h"

namespace tacho::web::test {

/// Files of a server with a certificate for 127.0.0.1.
struct Certified {
  TempDir dir;

  /// Writes them. @return path of the web configuration
  [[nodiscard]] std::string configure() const {
    const auto identity = Authority("test authority").issue("server", "IP:127.0.0.1");
    dir.write("server.key", identity.key);
    dir.write("server.crt", identity.certificate);
    return dir.write("web.yml", "tls_server_config: {cert_file: server.crt, key_file: server.key}\n").string();
  }
};

}  // namespace tacho::web::test
