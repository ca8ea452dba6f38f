#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "targets/cgroup_path.h"
#include "targets/container_name.h"

namespace tacho::targets {

/// Files of Docker and podman about their containers. A file is read again only when it has changed; that is how a
/// renamed container is detected.
class EngineFiles {
 public:
  explicit EngineFiles(NameSources sources) : sources_(std::move(sources)) {}

  /// Finds the files that exist. To be called before a number of calls of find().
  /// @param users who run containers of their own, by number: nobody else's home is touched, since it may be on a file
  /// system that has fallen silent
  void look(const std::set<std::string>& users);
  /// The engine's name of a container; nothing if no engine knows it. A user's containers are searched for only in that
  /// user's directories, and no others are searched for there.
  std::optional<ContainerName> find(const CgroupIdentity& container);
  /// Drops the files of containers that find() was not called for since look().
  void forget_others();
  /// Whether a file that gave a name has changed.
  [[nodiscard]] bool changed() const;

 private:
  /// Distinguishes two contents of a file: engines replace the whole file.
  using Version = std::tuple<std::uint64_t, std::int64_t, std::int64_t, std::int64_t>;
  using Names = std::map<std::string, ContainerName>;
  struct File {
    Version version{};
    Names names;  ///< by id
    std::int64_t largest = 0;
    bool asked = false;
  };
  struct Places {
    std::vector<std::string> docker;  ///< directories with one directory a container
    std::vector<std::string> podman;  ///< lists of containers
    std::int64_t largest = 0;         ///< bytes that a file there may have
  };

  static std::optional<Version> version_of(const std::string& path, std::int64_t largest);
  static std::optional<Names> read_docker(const std::string& path, std::int64_t largest, const std::string& id);
  static std::optional<Names> read_podman(const std::string& path, std::int64_t largest);
  void look_at_homes(const std::set<std::string>& users);
  void add_home(const std::string& home, const std::string& user);
  static void add_podman(const std::string& storage, Places& places);
  /// The file's names, read if they are not known yet; nullptr if there is none.
  template <class Read>
  const Names* names_in(const std::string& path, std::int64_t largest, Read read);

  NameSources sources_;
  std::map<std::string, Places> places_;  // by number of the user; "" for the machine's
  std::map<std::string, File> files_;
};

}  // namespace tacho::targets
