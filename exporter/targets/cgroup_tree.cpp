#include "targets/cgroup_tree.h"

#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

namespace tacho::targets {
namespace {

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

}  // namespace

Result<std::string> find_cgroup_mount(const std::string& mountinfo_path) {
  std::ifstream file(mountinfo_path);
  std::string line;
  std::string partial;
  while (std::getline(file, line)) {
    const auto separator = line.find(" - cgroup2 ");
    if (separator == std::string::npos) {
      continue;
    }
    std::istringstream fields(line);
    std::string id;
    std::string parent;
    std::string device;
    std::string root;
    std::string mount;
    fields >> id >> parent >> device >> root >> mount;
    if (root == "/") {
      return unescape(mount);
    }
    partial = unescape(mount);
  }
  if (!partial.empty()) {
    return partial;
  }
  return fail("no cgroup v2 hierarchy is mounted (" + mountinfo_path +
                  "): mount it with `mount -t cgroup2 none /sys/fs/cgroup/unified`, or name it with --path.cgroupfs",
              ENOENT);
}

Result<std::uint64_t> cgroup_id(const std::string& mount, const std::string& path) {
  struct stat status{};
  const std::string full = mount + path;
  if (::stat(full.c_str(), &status) != 0) {
    return fail_errno("cgroup " + full);
  }
  return status.st_ino;
}

std::map<std::string, std::uint64_t> walk_cgroups(const std::string& mount) {
  std::map<std::string, std::uint64_t> found;
  std::vector<std::string> pending{"/"};
  while (!pending.empty()) {
    const std::string path = pending.back();
    pending.pop_back();
    const auto id = cgroup_id(mount, path);
    if (!id) {
      continue;
    }
    found.emplace(path, *id);
    std::error_code error;
    for (std::filesystem::directory_iterator entry(mount + path, error), end; !error && entry != end;
         entry.increment(error)) {
      std::error_code ignored;
      if (entry->is_directory(ignored) && !entry->is_symlink(ignored)) {
        pending.push_back((path == "/" ? "" : path) + "/" + entry->path().filename().string());
      }
    }
  }
  return found;
}

}  // namespace tacho::targets
