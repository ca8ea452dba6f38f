#pragma once

#include <string>
#include <vector>

namespace tacho::web::test {

/// A certificate and its private key as PEM.
struct Identity {
  std::string certificate;
  std::string key;
};

/// An authority that issues certificates for the tests; made anew for each.
class Authority {
 public:
  explicit Authority(const std::string& name);

  /// A certificate of `common_name` with alternative names as OpenSSL writes them ("DNS:a", "IP:127.0.0.1", "URI:…",
  /// "email:…"), from now on for `days`.
  [[nodiscard]] Identity issue(const std::string& common_name, const std::string& names, bool for_client = false,
                               int days = 1) const;

  [[nodiscard]] const std::string& certificate() const { return identity_.certificate; }

 private:
  Identity identity_;
};

}  // namespace tacho::web::test
