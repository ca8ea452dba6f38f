#pragma once

#include <array>
#include <chrono>
#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/probe_list.h"

namespace tacho::config {

using Duration = std::chrono::nanoseconds;

/// A place in the file; lines and columns count from 1, 0 is unknown.
struct Location {
  int line = 0;
  int column = 0;
};

/// Globs on the names that the kubelet or the container engine gives to a container; an unset one matches everything.
struct ContainerSelector {
  std::optional<std::string> name;
  std::optional<std::string> namespace_;
  std::optional<std::string> pod;
};

/// Processes by executable (glob on /proc/PID/exe) and by a port they listen on.
struct ProcessSelector {
  std::optional<std::string> exe;
  std::optional<std::uint16_t> port;
};

/// The connections that are counted by the frames of HTTP/2: those that begin with its preface (RFC 9113, 3.4), none,
/// or also those older than tacho that look like it.
enum class Http2 : std::uint8_t { automatic, off, on };

enum class SelfScope : std::uint8_t { pod, cgroup };

/// The clients whose requests a target leaves out; it only counts how many they are.
enum class Clients : std::uint8_t { none, node };

/// One entry of `targets:`; exactly one selector is set.
struct TargetRule {
  std::string name;
  std::optional<std::string> cgroup;  ///< glob on the path below the cgroup v2 root
  std::optional<ContainerSelector> container;
  std::optional<ProcessSelector> process;
  std::optional<SelfScope> self;
  std::vector<std::uint16_t> ports;  ///< only server sockets on these local ports; empty: all
  Http2 http2 = Http2::automatic;
  Clients exclude_clients = Clients::none;
  std::map<std::string, std::string> labels;  ///< added to every series of the target
  Location location;
};

enum class Listeners : std::uint8_t { automatic, always, never };

struct Discovery {
  Listeners listeners = Listeners::automatic;  ///< automatic: when no target is configured
  std::vector<std::string> exclude;            ///< cgroup globs that discovery leaves out
  /// Globs on namespaces of Kubernetes that discovery leaves out, and selectors by container that name no namespace.
  std::vector<std::string> exclude_namespaces{"kube-system", "kube-public", "kube-node-lease"};
  Clients exclude_clients = Clients::none;  ///< of all that is discovered
};

/// The name of the peers in some networks, in the label `peer`: "NAME:PORT" instead of "ADDRESS:PORT".
struct PeerName {
  std::string name;
  std::vector<std::string> networks;  ///< as parse_network() takes them

  bool operator==(const PeerName&) const = default;
};

/// Changes to the labels that name a container.
struct ContainerLabels {
  struct Rename {
    std::string namespace_ = "namespace";
    std::string pod = "pod";
    std::string container = "container";
    std::string cgroup = "cgroup";
  };
  enum class Label : std::uint8_t { namespace_, pod, container, cgroup };

  Rename rename;
  std::vector<Label> drop;  ///< targets that are equal without them are merged
};

/// The family of kernel hooks that a probe uses; automatic takes the first that loads and attaches.
enum class Attach : std::uint8_t { automatic, tracepoint, fentry, kprobe, raw_tracepoint, scheduler };

struct ProbeSwitch {
  bool enabled = true;
  Attach attach = Attach::automatic;

  bool operator==(const ProbeSwitch&) const = default;
};

/// The time of requests by part; measured by the probes `socket` and `sched` together.
struct AnatomySwitch {
  bool enabled = false;
  Duration slow{0};  ///< requests that take longer are slow; 0: longer than the target's own p99
  Duration minute{std::chrono::minutes(1)};  ///< of each the slowest are kept; without a key: tests have shorter ones

  bool operator==(const AnatomySwitch&) const = default;
};

struct Probes {
#define TACHO_SWITCH(name, ...) ProbeSwitch name;
  TACHO_PROBES(TACHO_SWITCH)
#undef TACHO_SWITCH
  AnatomySwitch anatomy;
};

/// A probe by the key below `probes` that switches it.
struct NamedProbe {
  std::string_view name;
  ProbeSwitch Probes::* settings;
};

/// All of them, for all code that iterates over the probes.
#define TACHO_NAMED(name, ...) NamedProbe{#name, &Probes::name},
inline constexpr std::array kProbes{TACHO_PROBES(TACHO_NAMED)};
#undef TACHO_NAMED

/// The forms of a histogram in protobuf; the text formats have only the classic one.
enum class HistogramForm : std::uint8_t { classic, native, both };

struct Histograms {
  HistogramForm format = HistogramForm::both;
  unsigned buckets_per_octave = 0;  ///< of the classic form: 1, 2 or 4; 0: as many as a family needs
};

/// A glob on names of metric families.
struct FamilyGlob {
  std::string pattern;
  Location where;
};

struct Metrics {
  std::vector<FamilyGlob> drop;
};

/// A share, in hundredths of a percent.
struct Percent {
  unsigned hundredths = 0;

  [[nodiscard]] double share() const { return hundredths / 1e4; }
  auto operator<=>(const Percent&) const = default;
};

struct Limits {
  unsigned max_targets = 256;
  unsigned max_peers = 32;
  Percent overhead;          ///< of a target's own CPU time, for tacho's programs; 0: none
  Percent machine_overhead;  ///< of the time of all CPUs, for all targets; 0: none
  /// Until a target gets back what was shed; without a key: tests have a shorter one.
  Duration calm{std::chrono::seconds(30)};
  std::optional<unsigned> held_shed_level;  ///< of all targets, whatever they cost; without a key: for tests
};

struct Config {
  Duration window = std::chrono::seconds(10);     ///< of the windowed gauges
  Duration idle_limit = std::chrono::seconds(1);  ///< a longer gap between operations is idleness, not an interval
  std::vector<TargetRule> targets;
  Discovery discovery;
  ContainerLabels labels;
  Probes probes;
  Histograms histograms;
  Metrics metrics;
  Limits limits;
  std::vector<PeerName> peers;  ///< the longest matching prefix wins
  bool run_statistics = false;  ///< measure run time of our BPF programs (costs ~20 ns per event)
};

}  // namespace tacho::config
