#pragma once

#include <openssl/ssl.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "base/unique_fd.h"

namespace tacho::web {

/// A connection to a client, plain or TLS, on a nonblocking socket. One thread at a time.
///
/// TLS lets a client say nothing at any length: records of one byte, new keys. OpenSSL goes on as long as there is
/// more, so a connection is ended after as many records as no request needs.
class Stream {
 public:
  /// The result of a step.
  enum class Step : std::uint8_t {
    done,   ///< some of it, or all
    later,  ///< the socket has to become readable or writable first
    ended,  ///< nothing more comes from the client, or the connection is broken
  };

  /// @param context none: plain
  Stream(UniqueFd socket, SSL_CTX* context);
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream() = default;

  [[nodiscard]] int fd() const { return socket_.get(); }
  [[nodiscard]] bool tls() const { return ssl_ != nullptr; }

  /// Continues the handshake.
  Step shake_hands();
  /// Whether the handshake goes on only when the socket becomes writable.
  [[nodiscard]] bool wants_to_write() const;
  /// Whether the client was sent our part of the handshake, which costs most.
  [[nodiscard]] bool has_answered() const;
  /// Whether the client showed a certificate that the authorities of the configuration signed.
  [[nodiscard]] bool verified() const;

  Step read(std::span<char> into, std::size_t& count);
  Step write(std::string_view bytes, std::size_t& count);

  /// Nothing more will be written: the client reads an end.
  void finish();
  /// Bytes that were written and that the client's side has not taken.
  [[nodiscard]] std::size_t undelivered() const;
  /// Gives up the delivery of written data: otherwise the kernel would keep it for minutes.
  void give_up() const;

 private:
  struct Free {
    void operator()(SSL* ssl) const { SSL_free(ssl); }
  };

  [[nodiscard]] Step judge(int result) const;
  static long limit_reads(BIO* bio, int operation, const char* bytes, std::size_t size, int number, long value,
                          int result, std::size_t* done);

  UniqueFd socket_;
  unsigned reads_ = 0;
  std::unique_ptr<SSL, Free> ssl_;
};

}  // namespace tacho::web
