#include "targets/engine_files.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/regular_file.h"
#include "targets/directory.h"

namespace tacho::targets {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

// A user writes those of his own engine, and may put anything there.
constexpr std::int64_t kLargestFile = 8 << 20;     // 5 000 containers of podman's; a larger one is none of theirs
constexpr std::int64_t kLargestOfUsers = 1 << 20;  // 600 of them
constexpr std::size_t kMostLists = 16;             // of podman's: two for each driver that storage was used with
constexpr std::size_t kLongestText = 512;          // bytes, of a name, an image, a label: it stands in every series
constexpr int kDeepest = 8;                        // of what is nested; twice as deep as what is looked for

Json parse_json(const char* begin, const char* end) {
  const auto keeps = [](int depth, Json::parse_event_t, const Json&) { return depth <= kDeepest; };
  return Json::parse(begin, end, keeps, false);
}

/// Nothing if the file cannot be read now; discarded if it is no JSON. Another one may have come in its place since it
/// was looked at.
std::optional<Json> read_json(const std::string& path, std::int64_t largest) {
  const auto text = read_regular_file(path, static_cast<std::size_t>(largest), Links::refuse);
  if (!text) {
    return std::nullopt;
  }
  if (text->size() > static_cast<std::size_t>(largest)) {
    return Json(Json::value_t::discarded);
  }
  return parse_json(text->data(), text->data() + text->size());
}

/// What the kernel knows of a path without asking a server or mounting anything.
std::optional<struct statx> known_status(const std::string& path, int more = 0) {
  struct statx status{};
  const int flags = AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT | more;
  return ::statx(AT_FDCWD, path.c_str(), flags, STATX_BASIC_STATS, &status) == 0 ? std::optional(status) : std::nullopt;
}

const Json* part(const Json& object, const char* name) {
  const auto found = object.is_object() ? object.find(name) : object.end();
  return object.is_object() && found != object.end() ? &*found : nullptr;
}

/// The text, or nothing if it is none or no engine would give it.
std::string text_of(const Json& value) {
  const auto* const text = value.get_ptr<const std::string*>();
  return text != nullptr && text->size() <= kLongestText ? *text : "";
}

/// A text member of a JSON object, or nothing.
std::string member(const Json& object, const char* name) {
  const Json* const found = part(object, name);
  return found != nullptr ? text_of(*found) : "";
}

/// The image that podman names in a JSON text within its JSON.
std::string image_of(const Json& container) {
  const Json* const found = part(container, "metadata");
  const auto* const text = found != nullptr ? found->get_ptr<const std::string*>() : nullptr;
  return text != nullptr ? member(parse_json(text->data(), text->data() + text->size()), "image-name") : "";
}

/// Docker with user namespaces keeps all that it has in a directory "<uid>.<gid>".
bool is_remapped(const std::string& name) {
  return name.find('.') != std::string::npos && name.find_first_not_of("0123456789.") == std::string::npos;
}

}  // namespace

std::optional<EngineFiles::Version> EngineFiles::version_of(const std::string& path, std::int64_t largest) {
  const auto status = known_status(path, AT_SYMLINK_NOFOLLOW);
  if (!status || !S_ISREG(status->stx_mode) || status->stx_size > static_cast<std::uint64_t>(largest)) {
    return std::nullopt;
  }
  return Version{status->stx_ino, static_cast<std::int64_t>(status->stx_size), status->stx_mtime.tv_sec,
                 status->stx_mtime.tv_nsec};
}

std::optional<EngineFiles::Names> EngineFiles::read_docker(const std::string& path, std::int64_t largest,
                                                           const std::string& id) {
  const auto text = read_json(path, largest);
  if (!text) {
    return std::nullopt;
  }
  const Json& container = *text;
  const std::string name = member(container, "Name");  // "/web"
  if (name.size() <= 1) {
    return Names{};
  }
  ContainerName known;
  known.container = name.substr(name.front() == '/' ? 1 : 0);
  if (const Json* const config = part(container, "Config")) {
    known.image = member(*config, "Image");
    if (const Json* const labels = part(*config, "Labels")) {
      known.compose_project = member(*labels, "com.docker.compose.project");
      known.compose_service = member(*labels, "com.docker.compose.service");
    }
  }
  return Names{{id, std::move(known)}};
}

std::optional<EngineFiles::Names> EngineFiles::read_podman(const std::string& path, std::int64_t largest) {
  Names all;
  const auto containers = read_json(path, largest);
  if (!containers) {
    return std::nullopt;
  }
  for (const Json& container : containers->is_array() ? *containers : Json::array()) {
    const Json* const names = part(container, "names");
    const std::string name = names != nullptr && names->is_array() && !names->empty() ? text_of(names->front()) : "";
    if (name.empty()) {
      continue;
    }
    ContainerName known;
    known.container = name;
    known.image = image_of(container);
    all.emplace(member(container, "id"), std::move(known));
  }
  return all;
}

void EngineFiles::add_podman(const std::string& storage, Places& places) {
  for (const fs::path& directory : entries(storage)) {
    if (directory.filename().string().ends_with("-containers") && places.podman.size() < kMostLists) {
      places.podman.push_back(directory / "containers.json");
      places.podman.push_back(directory / "volatile-containers.json");  // of `podman run --rm`
    }
  }
}

void EngineFiles::add_home(const std::string& home, const std::string& user) {
  Places& places = places_[user];
  places.largest = kLargestOfUsers;
  const std::string share = home + "/.local/share";
  places.docker.push_back(share + "/docker/containers");
  add_podman(share + "/containers/storage", places);
}

/// Links lead to other file systems: they are followed only for who has no home without.
void EngineFiles::look_at_homes(const std::set<std::string>& users) {
  if (users.empty()) {
    return;
  }
  std::vector<fs::path> links;
  const auto add_if_wanted = [&](const fs::path& home, const struct statx& status) {
    if (const std::string owner = std::to_string(status.stx_uid); users.contains(owner)) {
      add_home(home, owner);
    }
  };
  for (const fs::path& home : entries(sources_.home)) {
    const auto status = known_status(home, AT_SYMLINK_NOFOLLOW);
    if (status && S_ISLNK(status->stx_mode)) {
      links.push_back(home);
    } else if (status) {
      add_if_wanted(home, *status);
    }
  }
  for (const fs::path& home : links) {
    if (std::ranges::all_of(users, [this](const std::string& user) { return places_.contains(user); })) {
      break;
    }
    if (const auto status = known_status(home)) {
      add_if_wanted(home, *status);
    }
  }
}

void EngineFiles::look(const std::set<std::string>& users) {
  places_.clear();
  for (auto& [path, file] : files_) {
    file.asked = false;
  }
  Places& machine = places_[""];
  machine.largest = kLargestFile;
  const std::string docker = sources_.lib + "/docker";
  machine.docker = {docker + "/containers", sources_.snap + "/docker/common/var-lib-docker/containers"};
  for (const fs::path& below : entries(docker)) {
    if (is_remapped(below.filename().string())) {
      machine.docker.push_back(below / "containers");
    }
  }
  add_podman(sources_.lib + "/containers/storage", machine);
  look_at_homes(users);
}

template <class Read>
const EngineFiles::Names* EngineFiles::names_in(const std::string& path, std::int64_t largest, Read read) {
  const auto known = files_.find(path);
  if (known != files_.end() && known->second.asked) {
    return &known->second.names;
  }
  const auto version = version_of(path, largest);
  if (!version) {
    return nullptr;
  }
  File& file = files_[path];
  file.largest = largest;
  if (file.version != *version) {
    // What could not be read is read again with the next look: its version stays unknown.
    if (auto names = read(path, largest)) {
      file.names = std::move(*names);
      file.version = *version;
    }
  }
  file.asked = true;
  return &file.names;
}

std::optional<ContainerName> EngineFiles::find(const CgroupIdentity& container) {
  const auto places = places_.find(container.user);
  const std::string& id = container.container_id;
  if (places == places_.end() || id.find('/') != std::string::npos) {
    return std::nullopt;
  }
  const auto named = [&id](const Names* names) -> std::optional<ContainerName> {
    const auto at = names == nullptr ? Names::const_iterator{} : names->find(id);
    return names == nullptr || at == names->end() ? std::nullopt : std::optional(at->second);
  };
  if (container.runtime != "docker") {
    for (const std::string& list : places->second.podman) {
      if (auto name = named(names_in(list, places->second.largest, read_podman))) {
        return name;
      }
    }
  }
  if (container.runtime != "podman") {
    for (const std::string& directory : places->second.docker) {
      std::string file = directory;
      file.append("/").append(id).append("/config.v2.json");
      const auto read = [&id](const std::string& path, std::int64_t largest) { return read_docker(path, largest, id); };
      if (auto name = named(names_in(file, places->second.largest, read))) {
        return name;
      }
    }
  }
  return std::nullopt;
}

void EngineFiles::forget_others() {
  std::erase_if(files_, [](const auto& entry) { return !entry.second.asked; });
}

bool EngineFiles::changed() const {
  return std::ranges::any_of(
      files_, [](const auto& entry) { return version_of(entry.first, entry.second.largest) != entry.second.version; });
}

}  // namespace tacho::targets
