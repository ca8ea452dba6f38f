#pragma once

#include <sys/un.h>

#include <cstdint>
#include <string_view>

#include "base/unique_fd.h"
#include "kernel/support/child.h"

namespace tacho::kernel_test {

/// Where a child listens and its parent connects: over streams of one kind. Made before the fork.
class Place {
 public:
  enum class Kind : std::uint8_t { tcp, mptcp, unix_stream };

  explicit Place(Kind kind);

  [[nodiscard]] Kind kind() const { return kind_; }
  /// Whether this kernel has such sockets; if not, it is said why a test is skipped.
  [[nodiscard]] bool available() const;
  /// In the child.
  [[nodiscard]] UniqueFd listen() const;
  [[nodiscard]] UniqueFd accept(const UniqueFd& listener) const;
  /// In the parent, once the child listens.
  [[nodiscard]] UniqueFd connect() const;

 private:
  [[nodiscard]] UniqueFd socket() const;

  Kind kind_;
  sockaddr_un name_{};
  Shared<std::uint16_t> port_;
};

std::string_view name_of(Place::Kind kind);

/// As server_that(), at a place; tells nothing but that it listens.
Child server_at(const Place& place, const std::string& cgroup,
                const std::function<void(const UniqueFd&, Line&)>& treat);
/// A connection to it.
UniqueFd connect_to(const Child& server, const Place& place);

}  // namespace tacho::kernel_test
