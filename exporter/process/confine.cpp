#include "process/confine.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/landlock.h>
#include <sched.h>
#include <spdlog/spdlog.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <fstream>

#include "base/result.h"
#include "base/unique_fd.h"
#include "process/capabilities.h"
#include "process/filters.h"

namespace tacho::process {
namespace {

constexpr int kNamespaces = CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS;

Result<void> check(int result, const char* what) {
  return result == 0 ? Result<void>{} : fail_errno(what);
}

bool write_file(const char* path, const std::string& text) {
  const UniqueFd file(::open(path, O_WRONLY | O_CLOEXEC));
  return file && ::write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

/// Of a user of its own nobody else's processes count; where the limit cannot be lifted it is as high as it may be.
void lift_process_limit() {
  const rlimit none{.rlim_cur = RLIM_INFINITY, .rlim_max = RLIM_INFINITY};
  rlimit limit{};
  if (::setrlimit(RLIMIT_NPROC, &none) != 0 && ::getrlimit(RLIMIT_NPROC, &limit) == 0) {
    limit.rlim_cur = limit.rlim_max;
    ::setrlimit(RLIMIT_NPROC, &limit);
  }
}

/// Where memory runs out, these processes go before the collector: all that they hold is made again.
void raise_oom_score() {
  constexpr int kMore = 500;
  constexpr int kMost = 1000;
  const char* const path = "/proc/self/oom_score_adj";
  int score = 0;
  if (std::ifstream(path) >> score) {
    write_file(path, std::to_string(std::min(score + kMore, kMost)));
  }
}

/// Mounts of its own. Who may not have them so may have them as a user who is mighty only there.
Result<void> leave_namespaces() {
  const unsigned user = ::geteuid();
  const unsigned group = ::getegid();
  if (::unshare(kNamespaces) == 0) {
    return {};
  }
  if (errno != EPERM || ::unshare(CLONE_NEWUSER | kNamespaces) != 0) {
    return fail_errno("unshare");
  }
  write_file("/proc/self/setgroups", "deny");
  write_file("/proc/self/uid_map", std::to_string(kNobody) + " " + std::to_string(user) + " 1");
  write_file("/proc/self/gid_map", std::to_string(kNobody) + " " + std::to_string(group) + " 1");
  return {};
}

/// An empty file system becomes the root of the mount namespace, and the old one goes.
Result<void> leave_mounts() {
  const char* const place = "/proc";  // a folder that is there; it is covered in this namespace only
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
      ::mount("none", place, "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, "size=4k,mode=555") != 0 ||
      ::mount(nullptr, place, nullptr, MS_REMOUNT | MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC, "size=4k") != 0) {
    return fail_errno("mount");
  }
  if (::chdir(place) != 0) {
    return fail_errno("chdir");
  }
  if (::syscall(SYS_pivot_root, ".", ".") == 0) {
    return check(::umount2(".", MNT_DETACH), "umount");
  }
  return check(::chroot("."), "chroot");  // an initial file system cannot be pivoted away
}

/// Without mounts: a folder that is removed again is empty for ever.
Result<void> leave_for_nothing() {
  for (const char* parent : {"/tmp", "/run", "/dev/shm", "/var/tmp"}) {
    std::string path = std::string(parent) + "/tacho-XXXXXX";
    if (::mkdtemp(path.data()) == nullptr) {
      continue;
    }
    const UniqueFd folder(::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    ::rmdir(path.c_str());
    if (folder && ::fchdir(folder.get()) == 0) {
      return check(::chroot("."), "chroot");
    }
  }
  return fail("no folder can be made", EROFS);
}

/// No path leads anywhere for who may restrict nothing but himself (Landlock, Linux 5.13).
Result<void> leave_files() {
  std::uint64_t handled = 0;
  for (std::uint64_t right = LANDLOCK_ACCESS_FS_EXECUTE; right <= LANDLOCK_ACCESS_FS_MAKE_SYM; right <<= 1U) {
    handled |= right;
  }
  const landlock_ruleset_attr attributes{.handled_access_fs = handled};
  const UniqueFd rules(static_cast<int>(::syscall(SYS_landlock_create_ruleset, &attributes, sizeof(attributes), 0)));
  if (!rules) {
    return fail_errno("Landlock");
  }
  return check(static_cast<int>(::syscall(SYS_landlock_restrict_self, rules.get(), 0)), "Landlock");
}

bool become(unsigned user) {
  return ::setresgid(user, user, user) == 0 && ::setresuid(user, user, user) == 0;
}

/// Whom nobody else is, so that nobody but root may signal these processes; where there are few users (a container's
/// namespace), nobody.
Result<void> become_unprivileged() {
  if (::setgroups(0, nullptr) != 0 && errno != EPERM) {
    return fail_errno("setgroups");
  }
  return become(kFirstOwnUser + static_cast<unsigned>(::getppid())) || become(kNobody) ? Result<void>{}
                                                                                       : fail_errno("setresuid");
}

}  // namespace

std::vector<std::string> confine_starter() {
  std::vector<std::string> lacks;
  const auto note = [&lacks](std::string_view what, const Result<void>& done) {
    if (!done) {
      lacks.push_back(std::string(what) + ": " + done.error().message);
    }
  };
  const rlimit no_core{.rlim_cur = 0, .rlim_max = 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  raise_oom_score();
  lift_process_limit();
  bool rootless = leave_namespaces() && leave_mounts();
  if (!rootless) {
    const auto left = leave_for_nothing();
    ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    rootless = left || leave_files();
    note("an empty root", rootless ? Result<void>{} : left);
  }
  note(kOwnUser, become_unprivileged());
  note("no capability", keep_capabilities(0));
  ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  note("few system calls", install(Filter::starter));
  return lacks;
}

std::vector<std::string> confine_collector(const CollectorNeeds& needs) {
  std::vector<std::string> lacks;
  const auto before = rights_of("", ::getpid());
  const bool has_bpf = before && (before->capabilities & capability_bit(CAP_BPF)) != 0;
  // A new target takes a new map. DAC_READ_SEARCH, where it was given: the names of other users' containers.
  CapabilitySet kept = capability_bit(has_bpf ? CAP_BPF : CAP_SYS_ADMIN) | capability_bit(CAP_DAC_READ_SEARCH);
  if (needs.reads_executables) {
    kept |= capability_bit(CAP_SYS_PTRACE);
  }
  if (auto done = keep_capabilities(kept); !done) {
    lacks.push_back("fewer capabilities: " + done.error().message);
  }
  const auto filter = needs.tells_service_manager ? Filter::telling_collector : Filter::collector;
  if (auto done = install(filter); !done) {
    lacks.push_back("few system calls: " + done.error().message);
  }
  for (const std::string& line : lacks) {
    spdlog::warn("the collector goes without {}", line);
  }
  return lacks;
}

}  // namespace tacho::process
