#pragma once

#include <openssl/ssl.h>

#include <filesystem>
#include <memory>

#include "base/result.h"
#include "config/web_config_file.h"
#include "web/files.h"

namespace tacho::web {

struct FreeSslContext {
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
};
using SslContext = std::unique_ptr<SSL_CTX, FreeSslContext>;

/// The system's trusted authorities: one file, or else a directory of files.
std::filesystem::path system_authorities_file();
std::filesystem::path system_authorities_directory();

/// The OpenSSL context for connections that `tls` describes; reads the certificate, key and authority files. HTTP/1.1
/// is the one protocol negotiated (ALPN). Sessions are not resumed, so that a changed certificate, authority or list of
/// names applies from the next connection on. Errors name the file and what is wrong with it.
Result<SslContext> make_ssl_context(const config::TlsServer& tls, const Files& files = Files::on_disk());

}  // namespace tacho::web
