#pragma once

#include <memory>

#include "base/guarded.h"
#include "probes/sample.h"
#include "probes/socket_decode.h"

namespace tacho::probes {

/// What turns of a target are to be added, where those of a part of its connections are followed (TACHO_SHED_SOCKETS).
/// Of what was counted meanwhile, as many times more as there were operations on the other connections. Only ever
/// grows; what is in flight is not estimated. The thread that owns the probe makes it grow, any thread adds it.
class Sampling {
 public:
  /// From here on turns of a part of the connections are followed.
  void begin(const SocketSnapshot& now);
  /// Makes up for what was not followed since begin(), or since the last call after which there was an operation on a
  /// chosen connection.
  /// @return false if there were operations on the others alone: nothing stands for them yet
  bool advance(const SocketSnapshot& now);
  /// To be called after advance(): turns of all connections are followed.
  void end() { from_.reset(); }

  [[nodiscard]] bool active() const { return from_ != nullptr; }
  void add_to(SocketSnapshot& snapshot) const;
  /// Before complete().
  void add_to(SocketSample& sample) const;

 private:
  std::unique_ptr<const SocketSnapshot> from_;           // the owner's; none: turns of all connections are followed
  Guarded<std::shared_ptr<const SocketSnapshot>> more_;  // estimated so far
};

}  // namespace tacho::probes
