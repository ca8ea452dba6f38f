#include "config/checks.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "config/glob.h"
#include "config/labels.h"
#include "config/network.h"

namespace tacho::config {
namespace {

/// The node of the key `name`; of the whole mapping where the key is missing.
Location place_of(const Node& node, std::string_view name) {
  const Node* const found = node.find(name);
  return found != nullptr ? found->where : node.where;
}

void check_selectors(const Node& node, const Context& context) {
  std::string given;
  const Node* last = nullptr;
  std::size_t count = 0;
  for (const Node& key : node.keys) {
    if (key.kind == Node::Kind::scalar && std::ranges::find(kSelectors, key.text) != kSelectors.end()) {
      given += (given.empty() ? "" : ", ") + key.text;
      last = &key;
      ++count;
    }
  }
  if (count == 0) {
    context.error(node.where, "the target selects nothing", "add one of cgroup, container, process, self");
  } else if (count > 1) {
    context.error(last->where, "the target has more than one selector: " + given, "keep one of them");
  }
}

void check_ports(const Node& node, const Context& context) {
  const Node* const ports = node.find("ports");
  if (ports == nullptr) {
    return;
  }
  std::set<std::string_view> seen;
  for (const Node& port : ports->items) {
    if (port.kind == Node::Kind::scalar && !seen.insert(port.text).second) {
      context.below("ports").error(port.where, "duplicate port " + quote(port.text), "remove it");
    }
  }
}

void check_names(const Node& targets, const Context& context) {
  std::map<std::string_view, int> lines;
  for (const Node& target : targets.items) {
    const Node* const name = target.find("name");
    if (name == nullptr || name->kind != Node::Kind::scalar) {
      continue;
    }
    if (const auto [first, added] = lines.emplace(name->text, name->where.line); !added) {
      context.error(name->where, "duplicate target name " + quote(name->text),
                    "first used in line " + std::to_string(first->second));
    }
  }
}

/// Two labels of one name would make the exposition invalid.
void check_renamed(const Config& config, const Node& node, const Context& context) {
  std::map<std::string, std::string> given;
  for (const TargetRule& target : config.targets) {
    for (const auto& [name, value] : target.labels) {
      if (check_label_name(name)) {  // else it is reported where it stands
        given.emplace(name, "target " + target.name);
      }
    }
  }
  const ContainerLabels::Rename& rename = config.labels.rename;
  for (const auto& [label, renamed] :
       {std::pair("namespace", &rename.namespace_), std::pair("pod", &rename.pod),
        std::pair("container", &rename.container), std::pair("cgroup", &rename.cgroup)}) {
    if (const auto [first, added] = given.emplace(*renamed, std::string("labels.rename.") + label); !added) {
      context.error(place_of(node, "labels"),
                    "labels.rename." + std::string(label) + ": label " + quote(*renamed) + " is given twice",
                    "the other time by " + first->second);
    }
  }
}

void check_networks(const Node& peers, const Context& context) {
  std::map<std::array<std::uint8_t, 17>, int> lines;
  for (const Node& peer : peers.items) {
    const Node* const networks = peer.find("networks");
    if (networks == nullptr) {
      continue;
    }
    for (const Node& network : networks->items) {
      const auto parsed = parse_network(network.text);
      if (network.kind != Node::Kind::scalar || !parsed) {
        continue;
      }
      std::array<std::uint8_t, 17> key{};
      std::ranges::copy(parsed->address, key.begin());
      key.back() = static_cast<std::uint8_t>(parsed->prefix_bits);
      if (const auto [first, added] = lines.emplace(key, network.where.line); !added) {
        context.error(network.where, "duplicate network " + quote(network.text),
                      "first used in line " + std::to_string(first->second));
      }
    }
  }
}

}  // namespace

Result<void> check_glob(std::string_view pattern) {
  if (const auto glob = Glob::compile(pattern); !glob) {
    return std::unexpected(glob.error());
  }
  return {};
}

Result<void> check_cgroup_glob(std::string_view pattern) {
  if (!pattern.starts_with('/')) {
    return fail("matches nothing: a cgroup path starts with /");
  }
  if (pattern.contains("//") || (pattern.size() > 1 && pattern.ends_with('/'))) {
    return fail("matches nothing: a cgroup path has no empty component and no / at its end");
  }
  return check_glob(pattern);
}

Result<void> check_exe_glob(std::string_view pattern) {
  if (!pattern.starts_with('/') && !pattern.starts_with("**")) {
    return fail("matches nothing: the path of an executable starts with / (write **/" + std::string(pattern) +
                " for any directory)");
  }
  return check_glob(pattern);
}

Result<void> check_target_name(std::string_view name) {
  if (name == kOverflowTarget) {
    return fail("is what everything beyond limits.max_targets is called; choose another name");
  }
  return {};
}

Result<void> check_renamed_label(std::string_view name) {
  constexpr std::array<std::string_view, 4> kOwn{"namespace", "pod", "container", "cgroup"};
  return std::ranges::find(kOwn, name) != kOwn.end() ? Result<void>() : check_label_name(name);
}

Result<void> check_peer_name(std::string_view name) {
  if (name == kOverflowTarget) {
    return fail("is what everything beyond limits.max_peers is called; choose another name");
  }
  return {};
}

Result<void> check_network(std::string_view network) {
  if (const auto parsed = parse_network(network); !parsed) {
    return std::unexpected(parsed.error());
  }
  return {};
}

void check_process(ProcessSelector& /*process*/, const Node& node, const Context& context) {
  if (node.keys.empty()) {
    context.error(node.where, "selects every process", "give exe, port or both");
  }
}

void check_target(TargetRule& rule, const Node& node, const Context& context) {
  rule.location = node.where;
  check_selectors(node, context);
  check_ports(node, context);
}

/// Whoever asks for anatomy would else look in vain for its families.
void check_anatomy(const Config& config, const Node& node, const Context& context) {
  if (!config.probes.anatomy.enabled) {
    return;
  }
  for (const auto& [name, settings] : {NamedProbe{"socket", &Probes::socket}, NamedProbe{"sched", &Probes::sched}}) {
    if (!(config.probes.*settings).enabled) {
      context.problems.warning(place_of(node, "probes"),
                               "probes.anatomy: nothing will be said about what requests wait for: it takes the probes "
                               "socket and sched, and " +
                                   std::string(name) + " is disabled",
                               "enable " + std::string(name));
    }
  }
}

void check_config(Config& config, const Node& node, const Context& context) {
  if (const Node* const targets = node.find("targets"); targets != nullptr) {
    check_names(*targets, context);
  }
  check_renamed(config, node, context);
  if (const Node* const peers = node.find("peers"); peers != nullptr) {
    check_networks(*peers, context);
  }
  if (config.targets.size() > config.limits.max_targets) {
    context.error(place_of(node, "targets"),
                  std::to_string(config.targets.size()) + " targets are more than limits.max_targets allows (" +
                      std::to_string(config.limits.max_targets) + ')',
                  "raise the limit or remove targets");
  }
  if (config.targets.empty() && config.discovery.listeners == Listeners::never) {
    context.problems.warning(place_of(node, "discovery"), "nothing will be watched: no targets, and discovery is off",
                             "add targets, or set discovery.listeners to auto");
  }
  if (std::ranges::none_of(kProbes, [&config](const NamedProbe& p) { return (config.probes.*(p.settings)).enabled; })) {
    context.problems.warning(place_of(node, "probes"), "nothing will be observed: all probes are disabled",
                             "enable one");
  }
  check_anatomy(config, node, context);
}

}  // namespace tacho::config
