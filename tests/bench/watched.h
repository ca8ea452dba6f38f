#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "app.h"
#include "base/unique_fd.h"
#include "bpf/lib/targets.h"

/// What benchmarks of events have in common: a connection to themselves, and tacho in their own process.
namespace tacho::bench {

/// Both ends of a TCP connection over loopback, without Nagle's delay.
struct Pair {
  UniqueFd client;
  UniqueFd server;
};

/// Prints `what` and errno's text, and ends with 1.
[[noreturn]] void die(const std::string& what);

Pair connect_pair();

/// A byte from one descriptor to the other: one send, one receive.
void move(int from, int to);

/// A request of a byte and its reply: kOperationsPerTurn sends and receives.
void turn(const Pair& pair);
inline constexpr int kOperationsPerTurn = 4;

/// Moves this process into the cgroup of that directory.
void join_cgroup(const std::string& directory);

/// The calling thread stays on that CPU.
void stay_on_one_cpu(unsigned cpu = 0);

struct Enabled {
  bool socket = false;
  bool poll = false;
  bool sched = false;
  bool anatomy = false;
  config::Attach attach = config::Attach::automatic;  // of the socket probe
  bool process_target = false;                        // another target, by a program that nobody runs
};

/// Watches the cgroups that the glob `cgroup` matches, and serves nothing. Ends with 1 if it cannot be started.
std::unique_ptr<App> start_tacho(const std::string& cgroup, const Enabled& probes, std::uint32_t max_targets = 0);

/// What a tacho that was started with these watches does without what that level sheds, from then on.
void shed(App& tacho, const std::string& cgroup, const Enabled& probes, tacho_shed level);

}  // namespace tacho::bench
