#include "web/health.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <array>
#include <memory>
#include <string_view>
#include <vector>

#include "base/unique_fd.h"
#include "base/unix_address.h"
#include "web/openssl_objects.h"
#include "web/tls.h"

namespace tacho::web {
namespace {

constexpr std::string_view kRequest = "GET /-/healthy HTTP/1.0\r\nHost: localhost\r\n\r\n";
constexpr std::string_view kStatusLine = "HTTP/1.1 200";  // of this length

std::unexpected<Error> openssl_error(const std::string& what) {
  const unsigned long code = ERR_get_error();
  const char* reason = ERR_reason_error_string(code);
  return ERR_SYSTEM_ERROR(code) || reason == nullptr ? fail_errno(what) : fail(what + ": " + reason);
}

Result<Bio> connect_unix(const ListenAddress& address) {
  const auto name = UnixAddress::of(address.host);
  if (!name) {
    return std::unexpected(name.error());
  }
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd || ::connect(fd.get(), name->get(), name->size()) != 0) {
    return fail_errno("cannot connect");
  }
  return Bio(BIO_new_socket(fd.release(), BIO_CLOSE));
}

Result<Bio> connect_tcp(const ListenAddress& address, std::chrono::seconds patience) {
  // Who listens on every address listens on loopback. By number: a container may have no /etc/hosts.
  std::vector<std::string> hosts{address.host};
  if (address.host.empty() || address.host == "::" || address.host == "0.0.0.0") {
    hosts = {"127.0.0.1", "::1"};
  }
  Bio bio;
  for (const std::string& host : hosts) {
    bio.reset(BIO_new(BIO_s_connect()));
    BIO_set_conn_hostname(bio.get(), host.c_str());
    BIO_set_conn_port(bio.get(), std::to_string(address.port).c_str());
    ERR_clear_error();
    if (BIO_do_connect_retry(bio.get(), static_cast<int>(patience.count()), -1) == 1) {
      return bio;
    }
  }
  return openssl_error("cannot connect");
}

/// TLS on top of a connection, whose certificate nobody looks at: it is this program's own server that is asked.
Result<Bio> wrap(Bio connection) {
  const SslContext context(SSL_CTX_new(TLS_client_method()));
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_NONE, nullptr);
  Bio tls(BIO_new_ssl(context.get(), 1));
  BIO_push(tls.get(), connection.release());
  if (BIO_do_handshake(tls.get()) != 1) {
    return openssl_error("no TLS");
  }
  return tls;
}

}  // namespace

Result<void> ask_health(const ListenAddress& address, bool tls, std::chrono::seconds patience) {
  ERR_clear_error();
  auto bio = address.is_unix ? connect_unix(address) : connect_tcp(address, patience);
  if (bio) {
    int fd = -1;
    BIO_get_fd(bio->get(), &fd);
    BIO_socket_nbio(fd, 0);
    const timeval limit{.tv_sec = patience.count(), .tv_usec = 0};
    ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    if (tls) {
      bio = wrap(std::move(*bio));
    }
  }
  if (!bio) {
    return std::unexpected(bio.error().within(address.text));
  }
  std::array<char, kStatusLine.size()> head{};
  std::size_t got = 0;
  if (BIO_write(bio->get(), kRequest.data(), kRequest.size()) == static_cast<int>(kRequest.size())) {
    int count = 1;
    while (got < head.size() && count > 0) {
      count = BIO_read(bio->get(), head.data() + got, static_cast<int>(head.size() - got));
      got += count > 0 ? static_cast<std::size_t>(count) : 0;
    }
  }
  const std::string_view line(head.data(), got);
  const std::string hint = tls ? "" : "; if it speaks TLS, give the --web.config.file";
  if (got < head.size() || !line.starts_with("HTTP/1.")) {
    return fail(address.text + ": no answer of an HTTP server" + hint);
  }
  if (!line.ends_with(" 200") && !line.ends_with(" 401")) {
    return fail(address.text + ": /-/healthy answers" + std::string(line.substr(line.find(' '))) + hint);
  }
  return {};
}

}  // namespace tacho::web
