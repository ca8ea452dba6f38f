#include "targets/processes.h"

#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <utility>

#include "base/unique_fd.h"
#include "kernel/iterator.h"

namespace tacho::targets {

namespace {

constexpr std::string_view kDeleted = " (deleted)";

/// For want of what this process needs, not because of what is looked at.
bool is_shortage(int code) {
  return code == EMFILE || code == ENFILE || code == ENOMEM || code == EINTR;
}

/// The whole of a small file, whatever bytes it has; empty if it cannot be had.
Result<std::string> read_whole(const std::string& path) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) {
    return fail_errno(path);
  }
  std::string text(4096, '\0');
  const ssize_t length = ::read(file.get(), text.data(), text.size());
  if (length < 0) {
    return fail_errno(path);
  }
  text.resize(static_cast<std::size_t>(length));
  return text;
}

/// What a process of which only the short name is known was called with, if that is its beginning: the kernel cuts it
/// after 15 bytes.
std::string whole_name(const std::string& name, const std::string& directory) {
  constexpr std::size_t kLongestName = 15;
  const std::string line = read_whole(directory + "/cmdline").value_or("");
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

Result<std::optional<Process>> read_process(const std::string& procfs, std::uint32_t tgid) {
  const std::string directory = procfs + "/" + std::to_string(tgid);
  const auto stat = read_whole(directory + "/stat");
  if (!stat) {
    return is_shortage(stat.error().code) ? Result<std::optional<Process>>(std::unexpected(stat.error()))
                                          : std::optional<Process>();
  }
  // "PID (command) state parent …"; the command may contain anything, also parentheses and line feeds.
  const auto open = stat->find('(');
  const auto close = stat->rfind(')');
  if (open == std::string::npos || close == std::string::npos || close + 4 >= stat->size()) {
    return std::optional<Process>();
  }
  Process process;
  process.tgid = tgid;
  std::from_chars(stat->data() + close + 4, stat->data() + stat->size(), process.parent);
  struct stat owner{};
  if (::stat(directory.c_str(), &owner) == 0) {
    process.user = owner.st_uid;
  }
  if (auto path = read_executable(directory)) {
    process.executable = std::move(*path);
  } else {
    process.executable = "[" + whole_name(stat->substr(open + 1, close - open - 1), directory) + "]";
  }
  return process;
}

Result<std::map<std::uint32_t, Process>> scan_processes(const std::string& procfs) {
  std::map<std::uint32_t, Process> all;
  std::error_code error;
  std::filesystem::directory_iterator entry(procfs, error);
  for (const std::filesystem::directory_iterator end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    std::uint32_t tgid = 0;
    const auto [rest, status] = std::from_chars(name.data(), name.data() + name.size(), tgid);
    if (status != std::errc() || rest != name.data() + name.size()) {
      continue;
    }
    auto process = read_process(procfs, tgid);
    if (!process) {
      return std::unexpected(process.error());
    }
    if (*process) {
      all.emplace(tgid, std::move(**process));
    }
  }
  if (error) {
    return fail_errno("processes in " + procfs, error.value());
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

const bpf_program* process_lister(const kernel::BpfObject& object) {
  const bpf_program* const paths = object.program("list_processes");
  return paths != nullptr ? paths : object.program("list_process_names");
}

Result<std::map<std::uint32_t, Process>> list_processes(const kernel::BpfObject& object, const std::string& procfs,
                                                        std::uint32_t& own_tgid) {
  if (const bpf_program* const lister = process_lister(object); lister != nullptr) {
    const auto records = kernel::read_records<process_record>(lister);
    if (records) {
      const auto own = std::ranges::find_if(*records, [](const process_record& record) { return record.own != 0; });
      if (own != records->end()) {
        own_tgid = own->tgid;
      }
      return processes_of(*records, procfs);
    }
    if (is_shortage(records.error().code)) {
      return std::unexpected(records.error());
    }
    spdlog::debug("{}: processes are read from {}", records.error().message, procfs);
  }
  return scan_processes(procfs);
}

}  // namespace tacho::targets
