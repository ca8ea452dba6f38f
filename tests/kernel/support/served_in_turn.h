#pragma once

#include <functional>
#include <string>

#include "kernel/support/child.h"
#include "kernel/support/wire.h"

namespace tacho::kernel_test {

/// A child in a cgroup that tells its port, and serves so many connections, one after the other.
inline Child served_in_turn(const std::string& cgroup, int connections,
                            const std::function<void(const UniqueFd&, Line&)>& serve) {
  return Child(cgroup, [&](Line& parent) {
    const UniqueFd listener = listen_tcp();
    parent.tell(port_of(listener));
    for (int i = 0; i < connections; ++i) {
      serve(accept_from(listener), parent);
    }
  });
}

}  // namespace tacho::kernel_test
