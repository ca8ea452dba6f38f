#pragma once

#include <crypt.h>

#include <catch2/catch.hpp>
#include <string>

namespace tacho::web::test {

/// A bcrypt hash of the lowest cost (4: about a millisecond), or of another.
inline std::string bcrypt_hash(const std::string& password, unsigned long cost = 4, const char* kind = "$2y$") {
  const char* const salt = ::crypt_gensalt(kind, cost, nullptr, 0);
  REQUIRE(salt != nullptr);
  const std::string copy = salt;
  const char* const hash = ::crypt(password.c_str(), copy.c_str());
  REQUIRE(hash != nullptr);
  return hash;
}

/// "Basic …" of a user and a password.
std::string basic(const std::string& credentials);

}  // namespace tacho::web::test
