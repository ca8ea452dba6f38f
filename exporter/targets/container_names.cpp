#include "targets/container_names.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

namespace tacho::targets {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

/// A shorter rest of an id than this may be two containers'.
constexpr std::size_t kLeastOfId = 8;

/// A directory's entries; none if it cannot be read.
std::vector<fs::path> entries(const fs::path& directory) {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator at(directory, error), end; !error && at != end; at.increment(error)) {
    found.push_back(at->path());
  }
  return found;
}

/// Discarded if the file is not there or is no JSON: it may be about to be written.
Json read_json(const fs::path& file) {
  std::ifstream stream(file);
  return stream ? Json::parse(stream, nullptr, false) : Json(Json::value_t::discarded);
}

/// A text member of a JSON object, or nothing.
std::string member(const Json& object, const char* name) {
  const auto found = object.is_object() ? object.find(name) : object.end();
  return object.is_object() && found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

/// One of the kubelet's links "<pod>_<namespace>_<container>-<id>.log".
struct Link {
  ContainerName name;
  std::string uid;  ///< of the pod, if the link leads to its logs
  std::string id;   ///< the first digits only, or none, where the name was cut at 255 bytes
};

std::optional<Link> read_link(const fs::path& path) {
  Link link;
  std::string stem = path.filename().string();
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
  if (auto log = parse_pod_log(fs::read_symlink(path, error).string())) {
    link.name = std::move(log->name);
    link.uid = std::move(log->uid);
  } else {
    link.name = {.namespace_ = stem.substr(first + 1, second - first - 1),
                 .pod = stem.substr(0, first),
                 .container = stem.substr(second + 1, has_id ? dash - second - 1 : std::string::npos)};
  }
  return link;
}

bool leads_to(const Link& link, const CgroupIdentity& container) {
  if (link.id == container.container_id) {
    return true;
  }
  return link.id.size() >= kLeastOfId && !link.uid.empty() && link.uid == container.pod_uid &&
         container.container_id.starts_with(link.id);
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

void ContainerNames::read_kubelet(const std::vector<const CgroupIdentity*>& missing) {
  std::vector<Link> links;
  for (const fs::path& path : entries(fs::path(sources_.log) / "containers")) {
    if (auto link = read_link(path)) {
      links.push_back(std::move(*link));
    }
  }
  std::map<std::string, const Link*> by_id;
  for (const Link& link : links) {
    by_id.emplace(link.id, &link);
  }
  for (const CgroupIdentity* container : missing) {
    const auto exact = by_id.find(container->container_id);
    if (exact != by_id.end()) {
      names_[container->container_id] = exact->second->name;
      continue;
    }
    const auto cut = std::ranges::find_if(links, [&](const Link& link) { return leads_to(link, *container); });
    if (cut != links.end()) {
      names_[container->container_id] = cut->name;
    }
  }
}

void ContainerNames::read_podman(const std::vector<const CgroupIdentity*>& missing) {
  for (const fs::path& directory : entries(fs::path(sources_.lib) / "containers" / "storage")) {
    if (!directory.filename().string().ends_with("-containers")) {
      continue;
    }
    const Json containers = read_json(directory / "containers.json");
    if (!containers.is_array()) {
      continue;
    }
    for (const Json& container : containers) {
      const std::string id = member(container, "id");
      const auto names = container.is_object() ? container.find("names") : container.end();
      const bool named = container.is_object() && names != container.end() && names->is_array() && !names->empty() &&
                         names->front().is_string();
      if (named && std::ranges::any_of(missing, [&id](const auto* m) { return m->container_id == id; })) {
        names_[id].container = names->front().get<std::string>();
      }
    }
  }
}

void ContainerNames::read_docker(const CgroupIdentity& container) {
  const Json config =
      read_json(fs::path(sources_.lib) / "docker" / "containers" / container.container_id / "config.v2.json");
  const std::string name = member(config, "Name");  // "/web"
  if (name.size() > 1) {
    names_[container.container_id].container = name.substr(name.front() == '/' ? 1 : 0);
  }
}

std::size_t ContainerNames::refresh(const std::vector<CgroupIdentity>& containers) {
  std::set<std::string_view> present;
  std::vector<const CgroupIdentity*> missing;
  for (const CgroupIdentity& container : containers) {
    present.insert(container.container_id);
    if (!names_.contains(container.container_id)) {
      missing.push_back(&container);
    }
  }
  std::erase_if(names_, [&present](const auto& entry) { return !present.contains(entry.first); });
  std::set<std::string> missed_before = std::exchange(missed_, {});
  misses_new_ = false;
  if (missing.empty()) {
    return 0;
  }
  const auto any = [&missing](auto property) { return std::ranges::any_of(missing, property); };
  if (any([](const auto* container) { return !container->pod_uid.empty(); })) {
    read_kubelet(missing);
  }
  if (any([](const auto* container) { return container->runtime == "podman"; })) {
    read_podman(missing);
  }
  for (const CgroupIdentity* container : missing) {
    if (container->runtime == "docker" && !names_.contains(container->container_id)) {
      read_docker(*container);
    }
  }
  for (const CgroupIdentity* container : missing) {
    if (!container->pod_uid.empty() && !names_.contains(container->container_id)) {
      misses_new_ |= !missed_before.contains(container->container_id);
      missed_.insert(container->container_id);
    }
  }
  return missed_.size();
}

}  // namespace tacho::targets
