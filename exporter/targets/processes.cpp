#include "targets/processes.h"

#include <charconv>
#include <filesystem>
#include <fstream>

namespace tacho::targets {

std::optional<Process> read_process(const std::string& procfs, std::uint32_t tgid) {
  const std::string directory = procfs + "/" + std::to_string(tgid);
  std::ifstream file(directory + "/stat");
  std::string stat;
  if (!std::getline(file, stat)) {
    return std::nullopt;
  }
  // "PID (command) state parent …"; the command may contain anything, also parentheses.
  const auto open = stat.find('(');
  const auto close = stat.rfind(')');
  if (open == std::string::npos || close == std::string::npos || close + 4 >= stat.size()) {
    return std::nullopt;
  }
  Process process;
  process.tgid = tgid;
  std::from_chars(stat.data() + close + 4, stat.data() + stat.size(), process.parent);
  std::error_code error;
  process.executable = std::filesystem::read_symlink(directory + "/exe", error).string();
  if (error) {
    process.executable = "[" + stat.substr(open + 1, close - open - 1) + "]";
  } else if (process.executable.ends_with(" (deleted)")) {
    process.executable.resize(process.executable.size() - 10);
  }
  return process;
}

std::map<std::uint32_t, Process> scan_processes(const std::string& procfs) {
  std::map<std::uint32_t, Process> all;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(procfs, error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    std::uint32_t tgid = 0;
    const auto [rest, status] = std::from_chars(name.data(), name.data() + name.size(), tgid);
    if (status != std::errc() || rest != name.data() + name.size()) {
      continue;
    }
    if (auto process = read_process(procfs, tgid)) {
      all.emplace(tgid, std::move(*process));
    }
  }
  return all;
}

}  // namespace tacho::targets
