#include "targets/kubelet_links.h"

#include <algorithm>
#include <filesystem>

#include "targets/directory.h"

namespace tacho::targets {
namespace {

/// A shorter rest of an id than this may be two containers'.
constexpr std::size_t kLeastOfId = 8;

/// The uid of a static pod is a hash, of others it has dashes, which not every driver keeps.
std::string without_dashes(std::string uid) {
  std::erase(uid, '-');
  return uid;
}

bool same_pod(const std::string& uid, const CgroupIdentity& container) {
  return !uid.empty() && without_dashes(uid) == without_dashes(container.pod_uid);
}

}  // namespace

std::optional<PodLog> parse_pod_log(std::string_view path) {
  constexpr std::string_view kDirectory = "/pods/";
  const auto begin = path.rfind(kDirectory);
  if (begin == std::string_view::npos) {
    return std::nullopt;
  }
  const std::string_view rest = path.substr(begin + kDirectory.size());
  const auto slash = rest.find('/');
  const std::string_view pod = rest.substr(0, slash);
  const auto first = pod.find('_');
  const auto second = first == std::string_view::npos ? first : pod.find('_', first + 1);
  if (second == std::string_view::npos || slash == std::string_view::npos) {
    return std::nullopt;
  }
  const std::string_view below = rest.substr(slash + 1);
  PodLog log;
  log.name = {.namespace_ = std::string(pod.substr(0, first)),
              .pod = std::string(pod.substr(first + 1, second - first - 1)),
              .container = std::string(below.substr(0, below.find('/')))};
  log.uid = pod.substr(second + 1);
  if (log.name.container.empty()) {
    return std::nullopt;
  }
  return log;
}

std::optional<KubeletLinks::Link> KubeletLinks::read(const std::string& directory, const std::string& file) {
  Link link;
  std::string stem = file;
  if (!stem.ends_with(".log")) {
    return std::nullopt;
  }
  stem.resize(stem.size() - 4);
  // Namespaces, pods and containers have no underscore in their names (RFC 1123 labels).
  const auto first = stem.find('_');
  const auto second = first == std::string::npos ? first : stem.find('_', first + 1);
  if (second == std::string::npos) {
    return std::nullopt;
  }
  const auto dash = stem.rfind('-');
  const bool has_id = dash != std::string::npos && dash > second;
  if (has_id) {
    link.id = stem.substr(dash + 1);
  }
  std::error_code error;
  if (auto log = parse_pod_log(std::filesystem::read_symlink(directory + "/" + file, error).string())) {
    link.name = std::move(log->name);
    link.uid = std::move(log->uid);
  } else {
    link.name = {.namespace_ = stem.substr(first + 1, second - first - 1),
                 .pod = stem.substr(0, first),
                 .container = stem.substr(second + 1, has_id ? dash - second - 1 : std::string::npos)};
  }
  return link;
}

bool KubeletLinks::leads_to(const Link& link, const CgroupIdentity& container) {
  if (link.id == container.container_id) {
    // A link that leads elsewhere (to Docker's own logs) tells no pod: then the cgroup has to be a runtime's.
    return same_pod(link.uid, container) ||
           (link.uid.empty() && container.place == CgroupIdentity::Place::runtime_root);
  }
  return link.id.size() >= kLeastOfId && same_pod(link.uid, container) && container.container_id.starts_with(link.id);
}

KubeletLinks::KubeletLinks(const std::string& log) {
  const std::string directory = log + "/containers";
  for (const std::filesystem::path& path : entries(directory)) {
    if (auto link = read(directory, path.filename().string())) {
      by_id_.emplace(link->id, links_.size());
      links_.push_back(std::move(*link));
    }
  }
}

const ContainerName* KubeletLinks::find(const CgroupIdentity& container) const {
  if (const auto exact = by_id_.find(container.container_id); exact != by_id_.end()) {
    const Link& link = links_[exact->second];
    return leads_to(link, container) ? &link.name : nullptr;
  }
  const auto cut = std::ranges::find_if(links_, [&](const Link& link) { return leads_to(link, container); });
  return cut == links_.end() ? nullptr : &cut->name;
}

}  // namespace tacho::targets
