#include "process/capabilities.h"

#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <system_error>

namespace tacho::process {
namespace {

constexpr std::array<std::string_view, 41> kNames{"chown",
                                                  "dac_override",
                                                  "dac_read_search",
                                                  "fowner",
                                                  "fsetid",
                                                  "kill",
                                                  "setgid",
                                                  "setuid",
                                                  "setpcap",
                                                  "linux_immutable",
                                                  "net_bind_service",
                                                  "net_broadcast",
                                                  "net_admin",
                                                  "net_raw",
                                                  "ipc_lock",
                                                  "ipc_owner",
                                                  "sys_module",
                                                  "sys_rawio",
                                                  "sys_chroot",
                                                  "sys_ptrace",
                                                  "sys_pacct",
                                                  "sys_admin",
                                                  "sys_boot",
                                                  "sys_nice",
                                                  "sys_resource",
                                                  "sys_time",
                                                  "sys_tty_config",
                                                  "mknod",
                                                  "lease",
                                                  "audit_write",
                                                  "audit_control",
                                                  "setfcap",
                                                  "mac_override",
                                                  "mac_admin",
                                                  "syslog",
                                                  "wake_alarm",
                                                  "block_suspend",
                                                  "audit_read",
                                                  "perfmon",
                                                  "bpf",
                                                  "checkpoint_restore"};
constexpr unsigned kSetBits = 64;
constexpr unsigned kWordBits = 32;

/// The number behind "name:" in a line of /proc/PID/status.
template <class Number>
bool read_field(std::string_view line, std::string_view name, int base, Number& value) {
  if (!line.starts_with(name)) {
    return false;
  }
  line.remove_prefix(name.size());
  line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
  return std::from_chars(line.data(), line.data() + line.size(), value, base).ec == std::errc{};
}

Result<Rights> read_status(const std::filesystem::path& path) {
  std::ifstream file(path);
  if (!file) {
    return fail("cannot read " + path.string(), ESRCH);
  }
  Rights rights;
  std::string line;
  while (std::getline(file, line)) {
    unsigned number = 0;
    if (read_field(line, "Uid:", 10, number)) {
      rights.uid = number;
    } else if (read_field(line, "NoNewPrivs:", 10, number)) {
      rights.no_new_privileges = number != 0;
    } else if (read_field(line, "Seccomp:", 10, number)) {
      rights.filtered = number != 0;
    }
    std::uint64_t kibibytes = 0;
    if (read_field(line, "RssAnon:", 10, kibibytes) || read_field(line, "RssShmem:", 10, kibibytes)) {
      rights.memory_bytes += kibibytes << 10U;
    }
    CapabilitySet set = 0;
    if (read_field(line, "CapPrm:", 16, set)) {
      rights.capabilities = set;
    }
  }
  return rights;
}

}  // namespace

std::string capability_name(unsigned number) {
  return number < kNames.size() ? std::string(kNames.at(number)) : std::to_string(number);
}

std::vector<std::string> capability_names(CapabilitySet set) {
  std::vector<std::string> names;
  for (unsigned number = 0; number < kSetBits; ++number) {
    if ((set & capability_bit(number)) != 0) {
      names.push_back(capability_name(number));
    }
  }
  return names;
}

Result<void> keep_capabilities(CapabilitySet kept) {
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
    return fail_errno("no_new_privs");
  }
  __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> sets{};
  if (::syscall(SYS_capget, &header, sets.data()) != 0) {
    return fail_errno("capget");
  }
  // Only who has SETPCAP may; without execve and without files that grant any the bounding set matters to nobody.
  for (unsigned number = 0; ::prctl(PR_CAPBSET_READ, number, 0, 0, 0) >= 0; ++number) {
    if ((kept & capability_bit(number)) == 0) {
      ::prctl(PR_CAPBSET_DROP, number, 0, 0, 0);
    }
  }
  ::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  for (std::size_t word = 0; word < sets.size(); ++word) {
    const auto mask = static_cast<std::uint32_t>(kept >> (word * kWordBits));
    sets.at(word).permitted &= mask;
    sets.at(word).effective = sets.at(word).permitted;
    sets.at(word).inheritable = 0;
  }
  if (::syscall(SYS_capset, &header, sets.data()) != 0) {
    return fail_errno("capset");
  }
  return {};
}

Result<Rights> rights_of(std::string process, int pid) {
  const std::filesystem::path folder = "/proc/" + std::to_string(pid);
  auto rights = read_status(folder / "status");
  if (!rights) {
    return rights;
  }
  rights->process = std::move(process);
  rights->pid = pid;
  std::error_code error;
  for (std::filesystem::directory_iterator task(folder / "task", error), end; !error && task != end;
       task.increment(error)) {
    if (const auto one = read_status(task->path() / "status")) {
      rights->capabilities |= one->capabilities;
      rights->no_new_privileges = rights->no_new_privileges && one->no_new_privileges;
      rights->filtered = rights->filtered && one->filtered;
    }
  }
  return rights;
}

Result<Rights> RightsReader::read(int pid, Clock::time_point now) {
  constexpr std::chrono::seconds kLookAtThreads(10);
  const std::lock_guard lock(mutex_);
  if (!known_ || known_->pid != pid || now - looked_ >= kLookAtThreads) {
    auto rights = rights_of(process_, pid);
    known_ = rights ? std::optional(*rights) : std::nullopt;
    looked_ = now;
    return rights;
  }
  auto status = read_status("/proc/" + std::to_string(pid) + "/status");
  if (!status) {
    known_.reset();
    return status;
  }
  known_->memory_bytes = status->memory_bytes;
  return *known_;
}

}  // namespace tacho::process
