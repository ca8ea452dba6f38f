#include "targets/tell_apart.h"

#include <algorithm>
#include <ranges>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/utf8.h"

namespace tacho::targets {
namespace {

using Group = std::vector<DesiredTarget*>;

std::uint64_t id_of(const DesiredTarget& target, const World& world) {
  const auto found = world.cgroups.find(target.identity.path);
  return found == world.cgroups.end() ? 0 : found->second;
}

void mark(DesiredTarget& target, const Labels& labels) {
  target.labels.insert(target.labels.end(), labels.begin(), labels.end());
  target.mark = labels;
}

/// A restarted container and the one before it, which is about to go.
bool take_turns(const DesiredTarget& a, const DesiredTarget& b) {
  return !a.container.pod.empty() && a.container == b.container && a.identity.pod_uid == b.identity.pod_uid;
}

/// What the members of a group differ in, as far as one word can tell.
std::pair<std::string, std::string CgroupIdentity::*> difference(const Group& group) {
  using Word = std::pair<std::string, std::string CgroupIdentity::*>;
  for (const Word& word :
       {Word{"runtime", &CgroupIdentity::runtime}, Word{"container_id", &CgroupIdentity::container_id}}) {
    std::set<std::string_view> values{""};
    if (std::ranges::all_of(
            group, [&](const DesiredTarget* one) { return values.insert(one->identity.*word.second).second; })) {
      return word;
    }
  }
  return {"cgroup", &CgroupIdentity::path};
}

/// The labels with one more; numbered where even that is another's (paths that differ in what is no text).
Labels free_mark(const DesiredTarget& target, const std::string& name, const std::string& value,
                 const std::set<Labels>& taken) {
  Labels one{{name, value}};
  for (int number = 2;; ++number) {
    Labels all = target.labels;
    all.push_back(one.front());
    if (!taken.contains(all)) {
      return one;
    }
    one.front().second = value + "#" + std::to_string(number);
  }
}

}  // namespace

void tell_apart(std::vector<DesiredTarget>& targets, const World& world, const std::map<std::string, Labels>& known) {
  std::map<Labels, Group> groups;
  std::set<Labels> taken;
  for (DesiredTarget& target : targets) {
    if (const auto earlier = known.find(target.identity.path); earlier != known.end()) {
      mark(target, earlier->second);
    }
    groups[target.labels].push_back(&target);
    taken.insert(target.labels);
  }
  for (auto& [labels, group] : groups) {
    if (group.size() < 2) {
      continue;
    }
    std::ranges::stable_sort(
        group, {}, [&world](const DesiredTarget* one) { return std::tuple(one->identity.place, id_of(*one, world)); });
    const auto& [name, value] = difference(group);
    for (DesiredTarget* one : group | std::views::drop(1)) {
      if (!take_turns(*one, *group.front())) {
        mark(*one, free_mark(*one, name, well_formed(one->identity.*value), taken));
        taken.insert(one->labels);
      }
    }
  }
}

void merge_equal(std::vector<DesiredTarget>& targets) {
  std::map<Labels, std::size_t> first;
  std::vector<DesiredTarget> merged;
  for (DesiredTarget& target : targets) {
    const auto [at, added] = first.emplace(target.labels, merged.size());
    if (added) {
      merged.push_back(std::move(target));
    } else {
      merged[at->second].cgroups.merge(target.cgroups);
      merged[at->second].processes.merge(target.processes);
    }
  }
  targets = std::move(merged);
}

}  // namespace tacho::targets
