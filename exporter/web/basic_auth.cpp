#include "web/basic_auth.h"

#include <civetweb.h>
#include <crypt.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include <algorithm>
#include <cctype>
#include <memory>
#include <vector>

namespace tacho::web {
namespace {

constexpr std::size_t kRemembered = 128;
constexpr std::size_t kMaxCredentials = 1024;

struct Credentials {
  std::string user;
  std::string password;
};

/// The credentials in "Basic <base64 of user:password>".
std::optional<Credentials> parse(std::string_view header) {
  constexpr std::string_view kScheme = "basic ";
  if (header.size() <= kScheme.size() || header.size() > kMaxCredentials) {
    return std::nullopt;
  }
  for (std::size_t i = 0; i < kScheme.size(); ++i) {
    if (std::tolower(static_cast<unsigned char>(header[i])) != kScheme[i]) {
      return std::nullopt;
    }
  }
  std::string_view encoded = header.substr(kScheme.size());
  encoded.remove_prefix(std::min(encoded.find_first_not_of(' '), encoded.size()));
  std::vector<unsigned char> decoded(encoded.size() + 1);  // ends with a NUL of the library's
  std::size_t size = decoded.size();
  if (mg_base64_decode(encoded.data(), encoded.size(), decoded.data(), &size) != -1) {
    return std::nullopt;
  }
  const std::string text(decoded.begin(), decoded.begin() + static_cast<std::ptrdiff_t>(size) - 1);
  const std::size_t colon = text.find(':');
  // crypt takes C strings: with a NUL inside, a password would match by its beginning.
  if (colon == std::string::npos || text.contains('\0')) {
    return std::nullopt;
  }
  return Credentials{.user = text.substr(0, colon), .password = text.substr(colon + 1)};
}

bool matches(const std::string& password, const std::string& hash) {
  const auto scratch = std::make_unique<crypt_data>();  // 32 KiB: not on a worker's stack
  const char* const computed = ::crypt_r(password.c_str(), hash.c_str(), scratch.get());
  return computed != nullptr && std::string_view(computed).size() == hash.size() &&
         CRYPTO_memcmp(computed, hash.data(), hash.size()) == 0;
}

}  // namespace

BasicAuth::BasicAuth() {
  RAND_bytes(key_.data(), static_cast<int>(key_.size()));
}

Login BasicAuth::look(const Users& users, const std::optional<std::string>& authorization) {
  if (users.empty()) {
    return Login::granted;
  }
  const auto credentials = authorization ? parse(*authorization) : std::nullopt;
  if (!credentials) {
    return Login::denied;
  }
  const auto user = users.find(credentials->user);
  const bool known = user != users.end();
  return known && remembered(digest(credentials->user, user->second, credentials->password)) ? Login::granted
                                                                                             : Login::unknown;
}

Login BasicAuth::check(const Users& users, const std::optional<std::string>& authorization) {
  const Login first = look(users, authorization);
  if (first != Login::unknown) {
    return first;
  }
  const auto credentials = parse(*authorization);
  const auto user = users.find(credentials->user);
  // Somebody else's hash, always the same one, stands in for a name that does not exist.
  const std::size_t stand_in = digest(credentials->user, {}, {}).front() % users.size();
  const std::string& hash =
      user != users.end() ? user->second : std::next(users.begin(), static_cast<std::ptrdiff_t>(stand_in))->second;
  ++hashed_;
  if (matches(credentials->password, hash) && user != users.end()) {
    remember(digest(credentials->user, hash, credentials->password));
    return Login::granted;
  }
  // The two digits after "$2y$" are the cost: what refuses is never cheaper than the dearest.
  const auto dearest = std::ranges::max_element(users, {}, [](const auto& each) { return each.second.substr(4, 2); });
  if (dearest->second.substr(4, 2) != hash.substr(4, 2)) {
    matches(credentials->password, dearest->second);
  }
  return Login::denied;
}

BasicAuth::Digest BasicAuth::digest(std::string_view user, std::string_view hash, std::string_view password) const {
  std::string text(user);
  text += ':';   // in no user's name
  text += hash;  // of one length
  text += password;
  Digest out{};
  unsigned size = out.size();
  const auto* const data = reinterpret_cast<const unsigned char*>(text.data());
  HMAC(EVP_sha256(), key_.data(), static_cast<int>(key_.size()), data, text.size(), out.data(), &size);
  return out;
}

bool BasicAuth::remembered(const Digest& digest) {
  const std::lock_guard lock(cache_mutex_);
  return granted_.contains(digest);
}

void BasicAuth::remember(const Digest& digest) {
  const std::lock_guard lock(cache_mutex_);
  if (!granted_.insert(digest).second) {
    return;
  }
  oldest_first_.push_back(digest);
  if (oldest_first_.size() > kRemembered) {
    granted_.erase(oldest_first_.front());
    oldest_first_.pop_front();
  }
}

}  // namespace tacho::web
