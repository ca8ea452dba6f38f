#include "web/stream.h"

#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <utility>

#include "web/client_names.h"

namespace tacho::web {
namespace {

constexpr unsigned kMostReads = 512;  // of a TLS connection: two a record, one each time that it waits

}  // namespace

Stream::Stream(UniqueFd socket, SSL_CTX* context) : socket_(std::move(socket)) {
  if (context != nullptr) {
    ssl_.reset(SSL_new(context));
    if (ssl_) {
      SSL_set_fd(ssl_.get(), socket_.get());
      SSL_set_accept_state(ssl_.get());
      BIO* const bio = SSL_get_rbio(ssl_.get());
      BIO_set_callback_ex(bio, limit_reads);
      BIO_set_callback_arg(bio, reinterpret_cast<char*>(&reads_));
    }
  }
}

/// Called before and after each operation on the socket; what it returns before one is the result if it is not
/// positive.
long Stream::limit_reads(BIO* bio, int operation, const char* /*bytes*/, std::size_t /*size*/, int /*number*/,
                         long /*value*/, int result, std::size_t* /*done*/) {
  if (operation != BIO_CB_READ || ++*reinterpret_cast<unsigned*>(BIO_get_callback_arg(bio)) <= kMostReads) {
    return result;
  }
  BIO_clear_retry_flags(bio);
  return -1;
}

Stream::Step Stream::judge(int result) const {
  switch (SSL_get_error(ssl_.get(), result)) {
    case SSL_ERROR_NONE:
      return Step::done;
    case SSL_ERROR_WANT_READ:
    case SSL_ERROR_WANT_WRITE:
      return Step::later;
    default:
      ERR_clear_error();
      return Step::ended;
  }
}

Stream::Step Stream::shake_hands() {
  if (!ssl_) {
    return Step::done;
  }
  ERR_clear_error();
  return judge(SSL_do_handshake(ssl_.get()));
}

bool Stream::wants_to_write() const {
  return ssl_ && SSL_want_write(ssl_.get());
}

bool Stream::has_answered() const {
  return ssl_ && BIO_number_written(SSL_get_wbio(ssl_.get())) > 0;
}

bool Stream::verified() const {
  return ssl_ && verifies_clients(ssl_.get()) && SSL_get_verify_result(ssl_.get()) == X509_V_OK &&
         SSL_get0_peer_certificate(ssl_.get()) != nullptr;
}

Stream::Step Stream::read(std::span<char> into, std::size_t& count) {
  count = 0;
  if (ssl_) {
    ERR_clear_error();
    return judge(SSL_read_ex(ssl_.get(), into.data(), into.size(), &count));
  }
  const ssize_t got = ::recv(socket_.get(), into.data(), into.size(), MSG_DONTWAIT);
  if (got > 0) {
    count = static_cast<std::size_t>(got);
    return Step::done;
  }
  return got < 0 && (errno == EAGAIN || errno == EINTR) ? Step::later : Step::ended;
}

Stream::Step Stream::write(std::string_view bytes, std::size_t& count) {
  count = 0;
  if (ssl_) {
    ERR_clear_error();
    return judge(SSL_write_ex(ssl_.get(), bytes.data(), bytes.size(), &count));
  }
  const ssize_t sent = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent >= 0) {
    count = static_cast<std::size_t>(sent);
    return Step::done;
  }
  return errno == EAGAIN || errno == EINTR ? Step::later : Step::ended;
}

void Stream::finish() {
  if (ssl_ && SSL_is_init_finished(ssl_.get()) != 0) {
    ERR_clear_error();
    SSL_shutdown(ssl_.get());
    ERR_clear_error();
  }
  ::shutdown(socket_.get(), SHUT_WR);
}

std::size_t Stream::undelivered() const {
  std::uint8_t state = 0;  // the first field of what is told; a unix socket has none
  socklen_t size = sizeof(state);
  if (::getsockopt(socket_.get(), IPPROTO_TCP, TCP_INFO, &state, &size) == 0 && state == TCP_CLOSE) {
    return 0;  // it was reset, whatever the kernel still counts
  }
  int count = 0;
  return ::ioctl(socket_.get(), SIOCOUTQ, &count) == 0 && count > 0 ? static_cast<std::size_t>(count) : 0;
}

void Stream::give_up() const {
  const linger at_once{.l_onoff = 1, .l_linger = 0};
  ::setsockopt(socket_.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
}

}  // namespace tacho::web
