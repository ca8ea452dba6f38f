#include "targets/cgroup_tree.h"

#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>
#include <vector>

#include "base/regular_file.h"

namespace tacho::targets {
namespace {

constexpr std::size_t kMostOfCgroupFile = 4096;  // of what is read of a cgroup: some numbers
constexpr std::string_view kPopulated = "populated ";

/// Spaces and the like are octal in mountinfo (\040).
std::string unescape(const std::string& text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 3 < text.size()) {
      out += static_cast<char>(std::stoi(text.substr(i + 1, 3), nullptr, 8));
      i += 3;
    } else {
      out += text[i];
    }
  }
  return out;
}

/// "… - cgroup SOURCE rw,memory": a mount of the v1 hierarchy that has the controller.
bool has_controller(std::string_view mount, const std::string& controller) {
  const auto separator = mount.find(" - cgroup ");
  if (separator == std::string_view::npos) {
    return false;
  }
  const std::string options = "," + std::string(mount.substr(mount.rfind(' ') + 1)) + ",";
  return options.find("," + controller + ",") != std::string::npos;
}

struct Mount {
  std::string root;   ///< the part of the file system that is mounted
  std::string point;  ///< where
};

Mount parse_mount(const std::string& line) {
  std::istringstream fields(line);
  std::string id;
  std::string parent;
  std::string device;
  Mount mount;
  fields >> id >> parent >> device >> mount.root >> mount.point;
  mount.point = unescape(mount.point);
  return mount;
}

}  // namespace

Result<std::string> find_cgroup_mount(const std::string& mountinfo_path) {
  std::ifstream file(mountinfo_path);
  if (!file) {
    return fail_errno("cannot read " + mountinfo_path + " (--path.procfs names where procfs is mounted)");
  }
  std::string line;
  std::string partial;
  std::string memory_v1;
  while (std::getline(file, line)) {
    const bool is_v2 = line.find(" - cgroup2 ") != std::string::npos;
    if (!is_v2 && !has_controller(line, "memory")) {
      continue;
    }
    const Mount mount = parse_mount(line);
    if (!is_v2) {
      memory_v1 = mount.point;
    } else if (mount.root == "/") {
      return mount.point;
    } else {
      partial = mount.point;
    }
  }
  if (!partial.empty() || !memory_v1.empty()) {
    return partial.empty() ? memory_v1 : partial;
  }
  return fail("no cgroup v2 hierarchy is mounted, and no v1 memory controller (" + mountinfo_path +
                  "): mount it with `mount -t cgroup2 none /sys/fs/cgroup/unified`, or name it with --path.cgroupfs",
              ENOENT);
}

std::string find_controller_mount(const std::string& mountinfo_path, const std::string& controller) {
  std::ifstream file(mountinfo_path);
  std::string line;
  while (std::getline(file, line)) {
    if (has_controller(line, controller)) {
      if (Mount mount = parse_mount(line); mount.root == "/") {
        return std::move(mount.point);
      }
    }
  }
  return {};
}

bool is_cgroup_v1(const std::string& directory) {
  struct statfs status{};
  return ::statfs(directory.c_str(), &status) == 0 && status.f_type == CGROUP_SUPER_MAGIC;
}

Result<std::uint64_t> cgroup_id(const std::string& mount, const std::string& path) {
  struct stat status{};
  const std::string full = mount + path;
  if (::stat(full.c_str(), &status) != 0) {
    return fail_errno("cgroup " + full);
  }
  return status.st_ino;
}

Result<void> check_cgroup_mount(const std::string& directory) {
  constexpr const char* kRemedy = " (--path.cgroupfs names where cgroup v2, or v1's memory controller, is mounted)";
  struct statfs status{};
  if (::statfs(directory.c_str(), &status) != 0) {
    const int code = errno;
    auto error = Error::from_errno("cgroup mount " + directory, code);
    error.message += kRemedy;
    return std::unexpected(error);
  }
  if (status.f_type != CGROUP2_SUPER_MAGIC && status.f_type != CGROUP_SUPER_MAGIC) {
    return fail("cgroup mount " + directory + ": no cgroups are mounted there" + kRemedy, EINVAL);
  }
  return {};
}

Result<CgroupWalk> walk_cgroups(const std::string& mount) {
  const auto vanished = [](int code) { return code == ENOENT || code == ENODEV; };
  // Whoever owns a cgroup can bring these about: they must not end the walk for all others.
  const auto refused = [](int code) { return code == EACCES || code == EPERM || code == ENAMETOOLONG; };
  CgroupWalk walk;
  std::vector<std::string> pending{"/"};
  while (!pending.empty()) {
    const std::string path = pending.back();
    pending.pop_back();
    const auto end_here = [&](Error error) -> Result<void> {
      if (path == "/" || (!vanished(error.code) && !refused(error.code))) {
        return std::unexpected(std::move(error));
      }
      if (refused(error.code)) {
        walk.refused.emplace(path, std::move(error));
      }
      return {};
    };
    const auto id = cgroup_id(mount, path);
    if (!id) {
      if (auto goes_on = end_here(id.error()); !goes_on) {
        return std::unexpected(goes_on.error());
      }
      continue;
    }
    walk.found.emplace(path, *id);
    std::error_code error;
    std::filesystem::directory_iterator entry(mount + path, error);
    for (const std::filesystem::directory_iterator end; !error && entry != end; entry.increment(error)) {
      std::error_code ignored;
      if (entry->is_directory(ignored) && !entry->is_symlink(ignored)) {
        pending.push_back((path == "/" ? "" : path) + "/" + entry->path().filename().string());
      }
    }
    if (!error) {
      continue;
    }
    std::string what = "cgroup ";
    what.append(mount).append(path);
    if (auto goes_on = end_here(Error::from_errno(what, error.value())); !goes_on) {
      return std::unexpected(goes_on.error());
    }
  }
  return walk;
}

bool is_inhabited(const std::string& mount, const std::string& path) {
  const std::string directory = mount + path;
  // Of v2, and not of its root.
  if (const auto events = read_regular_file(directory + "/cgroup.events", kMostOfCgroupFile, Links::refuse)) {
    if (const auto at = events->find(kPopulated); at == 0 || (at != std::string::npos && (*events)[at - 1] == '\n')) {
      return !std::string_view(*events).substr(at + kPopulated.size()).starts_with('0');
    }
  }
  const auto processes = read_regular_file(directory + "/cgroup.procs", 1, Links::refuse);
  if (!processes) {
    return processes.error().code != ENOENT && processes.error().code != ENODEV;
  }
  if (!processes->empty()) {
    return true;
  }
  std::error_code error;
  for (std::filesystem::directory_iterator entry(directory, error), end; !error && entry != end;
       entry.increment(error)) {
    std::error_code ignored;
    if (entry->is_directory(ignored) && is_inhabited(mount, path + "/" + entry->path().filename().string())) {
      return true;
    }
  }
  return false;
}

}  // namespace tacho::targets
