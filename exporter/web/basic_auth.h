#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace tacho::web {

enum class Login : std::uint8_t {
  granted,
  denied,
  unknown,  ///< a password has to be hashed first
};

/// HTTP basic authentication (RFC 7617) against bcrypt hashes. Thread-safe.
///
/// bcrypt takes some 70 ms of CPU by design. So a correct password is remembered (as a keyed hash; a changed password
/// hash is another one) and granted at once. The others are reported as unknown, so that the caller hashes one of them
/// at a time. A refusal costs the same whether the name exists or not, and whatever the cost of its hash.
class BasicAuth {
 public:
  using Users = std::map<std::string, std::string>;  ///< name → bcrypt hash

  BasicAuth();

  /// The result without hashing. `authorization` is the header of that name. Grants everything if there are no users.
  Login look(const Users& users, const std::optional<std::string>& authorization);
  /// The same, with hashing where it is needed: takes its time.
  Login check(const Users& users, const std::optional<std::string>& authorization);

  /// The number of passwords that were hashed, for tests of the cache.
  [[nodiscard]] std::uint64_t hashed() const { return hashed_; }

 private:
  using Digest = std::array<unsigned char, 32>;

  [[nodiscard]] Digest digest(std::string_view user, std::string_view hash, std::string_view password) const;
  bool remembered(const Digest& digest);
  void remember(const Digest& digest);

  Digest key_{};
  std::mutex cache_mutex_;
  std::set<Digest> granted_;
  std::deque<Digest> oldest_first_;
  std::atomic<std::uint64_t> hashed_ = 0;
};

}  // namespace tacho::web
