#include "targets/processes.h"

#include <spdlog/spdlog.h>
#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>
#include <utility>

#include "kernel/iterator.h"

namespace tacho::targets {

namespace {

constexpr std::string_view kDeleted = " (deleted)";

std::string read_all(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// What a process of which only the short name is known was called with, if that is its beginning: the kernel cuts it
/// after 15 bytes.
std::string whole_name(const std::string& name, const std::string& directory) {
  constexpr std::size_t kLongestName = 15;
  const std::string line = read_all(directory + "/cmdline");
  std::string called = line.substr(0, line.find('\0'));
  called = called.substr(called.rfind('/') + 1);
  return name.size() == kLongestName && called.starts_with(name) && called.find(' ') == std::string::npos ? called
                                                                                                          : name;
}

/// The path of /proc/PID/exe; nothing where it may not be read.
std::optional<std::string> read_executable(const std::string& directory) {
  std::error_code error;
  std::string path = std::filesystem::read_symlink(directory + "/exe", error).string();
  if (error) {
    return std::nullopt;
  }
  // The file itself tells whether that is the end of its name.
  struct stat status{};
  const bool there = ::stat((directory + "/exe").c_str(), &status) == 0 && status.st_nlink > 0;
  if (!there && path.ends_with(kDeleted)) {
    path.resize(path.size() - kDeleted.size());
  }
  return path;
}

}  // namespace

std::optional<Process> read_process(const std::string& procfs, std::uint32_t tgid) {
  const std::string directory = procfs + "/" + std::to_string(tgid);
  const std::string stat = read_all(directory + "/stat");
  // "PID (command) state parent …"; the command may contain anything, also parentheses and line feeds.
  const auto open = stat.find('(');
  const auto close = stat.rfind(')');
  if (open == std::string::npos || close == std::string::npos || close + 4 >= stat.size()) {
    return std::nullopt;
  }
  Process process;
  process.tgid = tgid;
  std::from_chars(stat.data() + close + 4, stat.data() + stat.size(), process.parent);
  struct stat owner{};
  if (::stat(directory.c_str(), &owner) == 0) {
    process.user = owner.st_uid;
  }
  if (auto path = read_executable(directory)) {
    process.executable = std::move(*path);
  } else {
    process.executable = "[" + whole_name(stat.substr(open + 1, close - open - 1), directory) + "]";
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

std::map<std::uint32_t, Process> processes_of(std::span<const process_record> records, const std::string& procfs) {
  std::map<std::uint32_t, Process> all;
  for (const process_record& record : records) {
    Process process{.tgid = record.tgid, .parent = record.parent, .user = record.user, .executable = {}};
    std::string name(record.name, ::strnlen(record.name, std::min<std::size_t>(record.length, sizeof(record.name))));
    if (record.whole_path != 0) {
      if (record.deleted != 0 && name.ends_with(kDeleted)) {
        name.resize(name.size() - kDeleted.size());
      }
      process.executable = std::move(name);
    } else {
      const auto path = read_executable(procfs + "/" + std::to_string(record.tgid));
      process.executable = path ? *path : "[" + name + "]";
    }
    all.emplace(record.tgid, std::move(process));
  }
  return all;
}

std::map<std::uint32_t, Process> list_processes(const kernel::BpfObject& object, const std::string& procfs,
                                                std::uint32_t& own_tgid) {
  for (const char* name : {"list_processes", "list_process_names"}) {
    const bpf_program* const lister = object.program(name);
    if (lister == nullptr) {
      continue;
    }
    const auto records = kernel::read_records<process_record>(lister);
    if (!records) {
      spdlog::debug("{}: processes are read from {}", records.error().message, procfs);
      break;
    }
    const auto own = std::ranges::find_if(*records, [](const process_record& record) { return record.own != 0; });
    if (own != records->end()) {
      own_tgid = own->tgid;
    }
    return processes_of(*records, procfs);
  }
  return scan_processes(procfs);
}

}  // namespace tacho::targets
