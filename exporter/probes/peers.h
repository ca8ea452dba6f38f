#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "bpf/socket.h"
#include "config/config.h"
#include "kernel/bpf_object.h"

namespace tacho::probes {

/// The names of dependencies: addresses, or the names that the configuration gives to networks.
class PeerNames {
 public:
  PeerNames() = default;
  explicit PeerNames(std::span<const config::PeerName> peers) : peers_(peers.begin(), peers.end()) {}

  /// Before loading: makes room in map `peer_networks`.
  void set_up(kernel::ObjectSetup& setup) const;
  /// After loading, before any program is attached to a socket that matters: fills map `peer_networks`.
  [[nodiscard]] Result<void> publish(const kernel::BpfObject& object) const;

  /// "10.0.0.7:5432", "[2001:db8::1]:443", "database:5432", "unix:/run/db.sock", "unix:@abstract"; "other" for an
  /// unknown address.
  [[nodiscard]] std::string of(const peer_address& peer) const;

 private:
  std::vector<config::PeerName> peers_;
};

}  // namespace tacho::probes
