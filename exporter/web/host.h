#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tacho::web {

/// The names that this machine has for itself. A request for another name over loopback may come from a page whose name
/// was made to lead there (DNS rebinding).
class OwnNames {
 public:
  OwnNames() = default;
  /// @param machine the machine's name: short or in full
  /// @param hosts a table as hosts(5) has it: what stands on a line with that name is the same machine
  OwnNames(std::string_view machine, std::string_view hosts);

  /// By the table in /etc/hosts, if it can be read.
  static OwnNames of_this_machine();

  /// Whether a Host header may be one of them: an address, "localhost" and what is below it (RFC 6761 §6.3), a name
  /// without a dot, or one of the machine's own in full, also one that it got later. Nobody can register the first
  /// three.
  [[nodiscard]] bool has(std::string_view host) const;

 private:
  [[nodiscard]] bool knows(std::string_view name) const;

  std::vector<std::string> names_;
};

}  // namespace tacho::web
