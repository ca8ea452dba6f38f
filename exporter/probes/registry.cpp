#include "probes/registry.h"

#include <array>

#include "probes/poll.h"
#include "probes/poll_decode.h"
#include "probes/sched.h"
#include "probes/sched_decode.h"
#include "probes/socket.h"
#include "probes/socket_decode.h"

namespace tacho::probes {
namespace {

constexpr std::array kRegistry{
    Entry{"socket", "Sockets and requests (probe `socket`)", socket_families,
          [](const config::Config& c) -> const config::ProbeSwitch& { return c.probes.socket; }, socket_variants,
          load_socket_probe, Entry::Threads::read},
    Entry{"poll", "Polling (probe `poll`)", poll_families,
          [](const config::Config& c) -> const config::ProbeSwitch& { return c.probes.poll; }, poll_variants,
          load_poll_probe},
    Entry{"sched", "Threads and CPUs (probe `sched`)", sched_families,
          [](const config::Config& c) -> const config::ProbeSwitch& { return c.probes.sched; }, sched_variants,
          load_sched_probe, Entry::Threads::kept},
};

}  // namespace

std::span<const Entry> registry() {
  return kRegistry;
}

}  // namespace tacho::probes
