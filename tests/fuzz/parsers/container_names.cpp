// Names that the kubelet's links, Docker's and podman's files give containers. A user writes those of his own engine.
// An input is the name of a link, where it leads, and a file of an engine's: three parts, separated by line feeds.
#include "targets/container_names.h"

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "fuzzer.h"
#include "targets/kubelet_links.h"

using namespace tacho;
using namespace tacho::targets;
using fuzz::require;

namespace {

namespace fs = std::filesystem;

const std::string kId(64, 'a');
const std::string kUid = "01234567-89ab-cdef-0123-456789abcdef";
const std::string kUser = "1000";

/// Directories as the kubelet's and the engines', made once.
struct Tree {
  std::string root;
  NameSources sources;

  Tree() {
    std::string pattern = "/dev/shm/tacho-fuzz-XXXXXX";
    require(::mkdtemp(pattern.data()) != nullptr, "there is a place for files");
    root = pattern;
    sources = {.log = root + "/log", .lib = root + "/lib", .snap = root + "/snap", .home = root + "/home"};
    fs::create_directories(sources.log + "/containers");
    fs::create_directories(sources.lib + "/docker/containers/" + kId);
    fs::create_directories(sources.lib + "/containers/storage/overlay-containers");
  }
  Tree(const Tree&) = delete;
  Tree& operator=(const Tree&) = delete;
  ~Tree() {
    std::error_code ignored;
    fs::remove_all(root, ignored);
  }

  void write(std::string_view link, std::string_view target, std::string_view file) const {
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator(sources.log + "/containers")) {
      fs::remove(entry.path(), ignored);
    }
    std::string name(link.substr(0, 255));
    std::erase(name, '/');
    std::erase(name, '\0');
    std::string leads(target.substr(0, 4000));
    std::erase(leads, '\0');
    if (!name.empty() && name != "." && name != ".." && !leads.empty()) {
      fs::create_symlink(leads, sources.log + "/containers/" + name, ignored);
    }
    for (const std::string& path : {sources.lib + "/docker/containers/" + kId + "/config.v2.json",
                                    sources.lib + "/containers/storage/overlay-containers/containers.json"}) {
      std::ofstream(path, std::ios::binary | std::ios::trunc) << file;
    }
  }
};

std::string_view cut(std::string_view& text) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  const std::string_view part = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return part;
}

CgroupIdentity container(std::string path, std::string pod_uid) {
  CgroupIdentity identity;
  identity.kind = CgroupIdentity::Kind::container;
  identity.place = CgroupIdentity::Place::runtime_root;
  identity.path = std::move(path);
  identity.container_id = kId;
  identity.pod_uid = std::move(pod_uid);
  return identity;
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Tree tree;
  std::string_view rest = fuzz::text_of(data, size);
  const std::string_view link = cut(rest);
  const std::string_view target = cut(rest);
  tree.write(link, target, rest);
  if (const auto log = parse_pod_log(target)) {
    require(!log->name.container.empty(), "a log is of a container");
  }
  // One of a pod's, one of Docker's; nothing is known of either but by these files.
  const std::vector<CgroupIdentity> containers{container("/kubepods/pod" + kUid + "/" + kId, kUid),
                                               container("/docker/" + kId, "")};
  ContainerNames names(tree.sources, [](const std::string& path) { return path.size() % 2 == 0; });
  require(names.refresh({containers[0]}) <= 1, "at most that one is without a name");
  names.refresh({containers[1]});
  names.refresh(containers);
  return 0;
}
