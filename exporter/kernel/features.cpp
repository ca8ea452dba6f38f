#include "kernel/features.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <linux/capability.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>

#include "base/unique_fd.h"
#include "kernel/kernel_types.h"

namespace tacho::kernel {
namespace {

constexpr const char* kTracefs = "/sys/kernel/tracing";

bool has_capability(unsigned capability) {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  std::array<__user_cap_data_struct, 2> data{};
  if (::syscall(SYS_capget, &header, data.data()) != 0) {
    return false;
  }
  return (data[capability / 32].effective & (1U << (capability % 32))) != 0;
}

/// User namespaces grant capabilities that bpf(2) does not go by: only those of the machine's own map all numbers.
bool is_in_user_namespace() {
  std::uint64_t inside = 0;
  std::uint64_t outside = 0;
  std::uint64_t count = 0;
  std::ifstream("/proc/self/uid_map") >> inside >> outside >> count;
  return count != 0 && count != 0xffffffffULL;
}

/// Tries bpf(2) by a map of four bytes. @return why it is refused, and what helps; empty if it is not
std::string refused_bpf() {
  const UniqueFd map(bpf_map_create(BPF_MAP_TYPE_ARRAY, "tacho_try", sizeof(__u32), sizeof(__u32), 1, nullptr));
  return map ? "" : why_bpf_is_refused(errno, is_in_user_namespace());
}

/// Tries the same by a type. Without types of their own functions of programs are verified once for each call: the
/// largest take the verifier half a minute each, and fail.
std::string refused_types() {
  const std::unique_ptr<btf, decltype(&btf__free)> types(btf__new_empty(), &btf__free);
  if (!types || btf__add_int(types.get(), "int", sizeof(int), BTF_INT_SIGNED) < 0) {
    return {};
  }
  __u32 size = 0;
  const void* bytes = btf__raw_data(types.get(), &size);
  const UniqueFd loaded(bytes != nullptr ? bpf_btf_load(bytes, size, nullptr) : -1);
  return loaded ? "" : "BTF_LOAD: " + why_bpf_is_refused(errno, is_in_user_namespace());
}

bool is_tracefs(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(path + "/events/syscalls", ignored);
}

}  // namespace

std::string why_bpf_is_refused(int error, bool in_user_namespace) {
  const std::string what = std::string("bpf(2) is refused: ") + std::strerror(error) + ": ";
  if (error == ENOSYS) {
    return what + "use a kernel with CONFIG_BPF_SYSCALL, and a seccomp profile that allows bpf";
  }
  if (error == ENOMEM) {
    return what + "raise the memory limit of the container or service";
  }
  if (error != EPERM && error != EACCES) {
    return what + "see the kernel's log";
  }
  return what + (in_user_namespace
                     ? "in a user namespace capabilities are not the machine's: run tacho outside of it (no rootless "
                       "container, no userns-remap)"
                     : "use a seccomp profile that allows bpf (docker run --security-opt "
                       "seccomp=deploy/image/seccomp.json), and see whether a security module denies it");
}

Result<std::string> ensure_tracefs() {
  for (const char* path : {kTracefs, "/sys/kernel/debug/tracing"}) {
    if (is_tracefs(path)) {
      return path;
    }
  }
  std::string path = kTracefs;
  if (::mount("tracefs", path.c_str(), "tracefs", MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr) != 0) {
    return fail_errno("tracefs is not mounted and cannot be mounted at " + path);
  }
  if (!is_tracefs(path)) {
    return fail("tracefs at " + path + " has no system call events (CONFIG_FTRACE_SYSCALLS)", ENOENT);
  }
  return path;
}

std::vector<std::string> missing_prerequisites(const std::string& btf_path) {
  std::vector<std::string> missing;
  if (!has_capability(CAP_SYS_ADMIN)) {
    if (!has_capability(CAP_BPF)) {
      missing.emplace_back("CAP_BPF is missing: run as root, or grant the capabilities BPF and PERFMON");
    }
    if (!has_capability(CAP_PERFMON)) {
      missing.emplace_back("CAP_PERFMON is missing: run as root, or grant the capabilities BPF and PERFMON");
    }
  }
  if (missing.empty()) {
    std::string refused = refused_bpf();
    if (refused.empty()) {
      refused = refused_types();
    }
    if (!refused.empty()) {
      missing.push_back(std::move(refused));
    }
  }
  const std::string btf = btf_path.empty() ? "/sys/kernel/btf/vmlinux" : btf_path;
  if (::access(btf.c_str(), R_OK) != 0) {
    missing.emplace_back("no kernel type information at " + btf +
                         ": use a kernel with CONFIG_DEBUG_INFO_BTF, or name a BTF file with --btf.path");
  } else if (!btf_path.empty() && !has_types(btf_path)) {
    missing.emplace_back("no kernel type information in " + btf +
                         ": name a BTF file of this kernel with --btf.path, or its vmlinux with debug information");
  }
  return missing;
}

KprobeRights kprobe_rights() {
  KprobeRights rights{.may_administer = has_capability(CAP_SYS_ADMIN)};
  std::ifstream("/proc/sys/kernel/perf_event_paranoid") >> rights.paranoid;
  const std::string events = std::string(kTracefs) + "/kprobe_events";
  rights.may_write_events = ::access(events.c_str(), F_OK) != 0 || ::access(events.c_str(), W_OK) == 0;
  return rights;
}

std::string missing_for_kprobes(const KprobeRights& rights) {
  std::string missing;
  // Debian's kernels refuse perf_event_open from level 3 on to whoever has only CAP_PERFMON.
  if (rights.paranoid > 2 && !rights.may_administer) {
    missing = "CAP_SYS_ADMIN (kernel.perf_event_paranoid is " + std::to_string(rights.paranoid) + ")";
  }
  if (!rights.may_write_events) {
    missing += (missing.empty() ? "" : " and ") + ("to write to " + std::string(kTracefs));
  }
  return missing;
}

bool kprobes_would_help(std::span<const HookState> hooks) {
  return std::ranges::any_of(hooks, [](const HookState& hook) { return !hook.attached(); }) &&
         std::ranges::any_of(hooks, [](const HookState& hook) { return hook.error.contains("kprobe: "); });
}

std::pair<unsigned, unsigned> kernel_release() {
  utsname name{};
  std::pair<unsigned, unsigned> release;
  return ::uname(&name) == 0 && std::sscanf(name.release, "%u.%u", &release.first, &release.second) == 2
             ? release
             : std::pair<unsigned, unsigned>{};
}

unsigned possible_cpus() {
  const int count = libbpf_num_possible_cpus();
  return count > 0 ? static_cast<unsigned>(count) : 1;
}

}  // namespace tacho::kernel
