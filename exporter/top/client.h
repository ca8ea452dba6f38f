#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <string>

#include "base/result.h"
#include "top/url.h"

namespace tacho::top {

/// How a server is asked.
struct Manners {
  std::string ca_file;                ///< certificates to trust (PEM); empty: the system's
  bool any_certificate = false;       ///< trust any server
  std::chrono::seconds patience{10};  ///< with each wait for the answer
};

/// Asks a tacho over HTTP, one request a connection. OpenSSL's HTTP client does the talking (its function
/// OSSL_HTTP_get): the program has OpenSSL anyway. Certificates are judged by the system's, or by a file of them.
class Client {
 public:
  static Result<std::unique_ptr<Client>> open(Url url, const Manners& manners);
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  ~Client();

  /// The body of a successful answer. Errors name the server, what is wrong and what can be done.
  Result<std::string> get(const std::string& path_and_query);

  /// Ends a get() on another thread at once, and all that come.
  void cancel();

  [[nodiscard]] const Url& url() const { return url_; }
  /// The status of the last answer that was no success; 0: there was none.
  [[nodiscard]] int refused_with() const { return refused_with_; }

 private:
  class Tls;
  Client(Url url, std::unique_ptr<Tls> tls, std::chrono::seconds patience);

  [[nodiscard]] Error within(const Error& error) const;

  Url url_;
  std::unique_ptr<Tls> tls_;
  std::chrono::seconds patience_;
  int refused_with_ = 0;
  std::mutex mutex_;  // of the two below
  int socket_ = -1;   // while a get() uses it
  bool cancelled_ = false;
};

}  // namespace tacho::top
