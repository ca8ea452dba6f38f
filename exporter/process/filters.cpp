#include "process/filters.h"

#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <seccomp.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <initializer_list>
#include <memory>
#include <string_view>

namespace tacho::process {
namespace {

using Names = std::initializer_list<const char*>;

/// What any thread of any program does: memory, locks, clocks, its end.
constexpr Names kRunning{"brk",
                         "munmap",
                         "mremap",
                         "madvise",
                         "futex",
                         "futex_waitv",
                         "set_robust_list",
                         "rseq",
                         "set_tid_address",
                         "membarrier",
                         "sched_yield",
                         "sched_getaffinity",
                         "getcpu",
                         "clock_gettime",
                         "clock_getres",
                         "clock_nanosleep",
                         "gettimeofday",
                         "time",
                         "nanosleep",
                         "getrandom",
                         "getpid",
                         "gettid",
                         "getppid",
                         "getuid",
                         "geteuid",
                         "getgid",
                         "getegid",
                         "getrusage",
                         "uname",
                         "sysinfo",
                         "rt_sigaction",
                         "rt_sigprocmask",
                         "rt_sigreturn",
                         "sigaltstack",
                         "restart_syscall",
                         "exit",
                         "exit_group"};
/// With descriptors that are there.
constexpr Names kDescriptors{"read",        "write",        "readv",         "writev",    "pread64",
                             "pwrite64",    "close",        "close_range",   "dup",       "dup2",
                             "dup3",        "fstat",        "lseek",         "poll",      "ppoll",
                             "select",      "pselect6",     "epoll_create1", "epoll_ctl", "epoll_wait",
                             "epoll_pwait", "epoll_pwait2", "eventfd2",      "recvmsg",   "recvfrom"};
/// Nothing that has a signal sent to somebody.
constexpr std::array kDescriptorCommands{F_DUPFD, F_DUPFD_CLOEXEC, F_GETFD, F_SETFD, F_GETFL, F_GET_SEALS, F_ADD_SEALS};
/// Connections that somebody else listens for.
constexpr Names kServing{"accept", "accept4", "getsockopt", "getpeername", "getsockname"};
struct SocketOption {
  int level;
  int name;
};
constexpr std::array kSocketOptions{SocketOption{SOL_SOCKET, SO_SNDBUF}, SocketOption{SOL_SOCKET, SO_RCVBUF},
                                    SocketOption{SOL_SOCKET, SO_LINGER}, SocketOption{IPPROTO_TCP, TCP_NODELAY},
                                    SocketOption{IPPROTO_TCP, TCP_NOTSENT_LOWAT}};
constexpr Names kFiles{"open",
                       "openat",
                       "openat2",
                       "stat",
                       "lstat",
                       "newfstatat",
                       "statx",
                       "statfs",
                       "fstatfs",
                       "access",
                       "faccessat",
                       "faccessat2",
                       "getdents64",
                       "readlink",
                       "readlinkat",
                       "getcwd",
                       "name_to_handle_at",
                       "unlink",
                       "unlinkat",
                       "signalfd4",
                       "timerfd_create",
                       "timerfd_settime",
                       "timerfd_gettime",
                       "inotify_init1",
                       "inotify_add_watch",
                       "inotify_rm_watch",
                       "pipe2",
                       "preadv",
                       "umask"};
constexpr Names kMemoryFiles{"memfd_create", "ftruncate"};
constexpr Names kProcesses{"wait4",
                           "waitid",
                           "kill",
                           "capget",
                           "capset",
                           "seccomp",
                           "landlock_create_ruleset",
                           "landlock_add_rule",
                           "landlock_restrict_self"};

struct Free {
  void operator()(void* context) const { seccomp_release(context); }
};

class Rules {
 public:
  explicit Rules(std::uint32_t otherwise = SCMP_ACT_ERRNO(EPERM)) : context_(seccomp_init(otherwise)) {}

  void allow(Names names) {
    for (const char* name : names) {
      add(name, {});
    }
  }
  /// Only where the arguments are as said.
  void allow(const char* name, std::initializer_list<scmp_arg_cmp> arguments) { add(name, arguments); }
  void answer(const char* name, std::uint32_t action) {
    const int number = seccomp_syscall_resolve_name(name);
    if (number >= 0) {
      note(seccomp_rule_add(context_.get(), action, number, 0));
    }
  }
  Result<void> load() {
    if (context_ == nullptr) {
      return fail("seccomp_init", ENOMEM);
    }
    note(seccomp_attr_set(context_.get(), SCMP_FLTATR_CTL_TSYNC, 1));
    note(seccomp_attr_set(context_.get(), SCMP_FLTATR_CTL_NNP, 0));
    // A search instead of a row of comparisons: the filter runs at each call.
    note(seccomp_attr_set(context_.get(), SCMP_FLTATR_CTL_OPTIMIZE, 2));
    if (error_ == 0 && seccomp_load(context_.get()) != 0) {
      // Where somebody's filter forbids seccomp(2), prctl(2) does it for this thread and those that come.
      note(seccomp_attr_set(context_.get(), SCMP_FLTATR_CTL_TSYNC, 0));
      note(seccomp_load(context_.get()));
    }
    return error_ == 0 ? Result<void>{} : fail_errno("seccomp", -error_);
  }

 private:
  void add(const char* name, std::initializer_list<scmp_arg_cmp> arguments) {
    const int number = seccomp_syscall_resolve_name(name);
    if (number >= 0) {  // a negative one: this architecture has none of that name
      note(seccomp_rule_add_array(context_.get(), SCMP_ACT_ALLOW, number, static_cast<unsigned>(arguments.size()),
                                  arguments.begin()));
    }
  }
  void note(int result) { error_ = error_ == 0 ? result : error_; }

  std::unique_ptr<void, Free> context_;
  int error_ = 0;
};

scmp_arg_cmp masked(unsigned argument, std::uint64_t mask, std::uint64_t value) {
  return {.arg = argument, .op = SCMP_CMP_MASKED_EQ, .datum_a = mask, .datum_b = value};
}
scmp_arg_cmp equal(unsigned argument, std::uint64_t value) {
  return {.arg = argument, .op = SCMP_CMP_EQ, .datum_a = value, .datum_b = 0};
}

/// Threads, no processes. What clone3 is to do stands in memory, where no filter sees it: the library then asks clone.
void allow_threads(Rules& rules) {
  rules.answer("clone3", SCMP_ACT_ERRNO(ENOSYS));
  rules.allow("clone", {masked(0, CLONE_THREAD, CLONE_THREAD)});
}

/// Signals to this process alone: the user may have others, and be root.
void allow_own_signals(Rules& rules) {
  rules.allow("tgkill", {masked(0, ~std::uint32_t{0}, static_cast<std::uint64_t>(::getpid()))});
}

/// To the other end and nowhere else: who sends "with fast open" connects. No descriptors go along: whoever receives
/// one has to close it, and a socket may linger for as long as its owner had wanted.
void allow_sending(Rules& rules) {
  rules.allow("sendto", {masked(3, MSG_FASTOPEN, 0), equal(4, 0)});
}

/// What serving takes. A listening socket that is shut down for reading listens no more, for whoever comes next either.
void allow_serving(Rules& rules) {
  rules.allow(kServing);
  rules.allow("shutdown", {equal(1, SHUT_WR)});
  rules.allow("ioctl", {equal(1, SIOCOUTQ)});
  for (const SocketOption& option : kSocketOptions) {
    rules.allow("setsockopt", {equal(1, static_cast<std::uint64_t>(option.level)),
                               equal(2, static_cast<std::uint64_t>(option.name))});
  }
}

/// No memory that can be run: no code comes in after the start.
void allow_memory(Rules& rules) {
  rules.allow("mmap", {masked(2, PROT_EXEC, 0)});
  rules.allow("mprotect", {masked(2, PROT_EXEC, 0)});
}

constexpr std::array kBpfCommands{BPF_MAP_CREATE,
                                  BPF_MAP_LOOKUP_ELEM,
                                  BPF_MAP_UPDATE_ELEM,
                                  BPF_MAP_DELETE_ELEM,
                                  BPF_MAP_GET_NEXT_KEY,
                                  BPF_OBJ_GET_INFO_BY_FD,
                                  BPF_MAP_LOOKUP_BATCH,
                                  BPF_MAP_LOOKUP_AND_DELETE_ELEM,
                                  BPF_MAP_LOOKUP_AND_DELETE_BATCH,
                                  BPF_MAP_UPDATE_BATCH,
                                  BPF_MAP_DELETE_BATCH,
                                  BPF_MAP_FREEZE,
                                  BPF_LINK_CREATE,
                                  BPF_ITER_CREATE,
                                  BPF_LINK_DETACH,
                                  BPF_PROG_TEST_RUN};  // sweeps, where the kernel has no iterators

void add_collector(Rules& rules, bool tells) {
  rules.allow(kFiles);
  rules.allow(kMemoryFiles);
  // The timer ends this process where nothing else does.
  rules.allow({"getrlimit", "wait4", "prctl", "setitimer"});
  rules.allow("prlimit64", {equal(0, 0)});  // its own: root may set those of others
  for (const auto command : kBpfCommands) {
    rules.allow("bpf", {equal(0, command)});
  }
  rules.allow({"shutdown"});
  rules.allow("socketpair", {equal(0, AF_UNIX)});
  rules.allow("setsockopt", {equal(1, SOL_SOCKET), equal(2, SO_SNDBUF)});
  if (tells) {
    rules.allow("socket", {equal(0, AF_UNIX)});
    rules.allow("sendto", {masked(3, MSG_FASTOPEN, 0)});
  }
  allow_sending(rules);
  rules.allow("sendmsg", {masked(2, MSG_FASTOPEN, 0)});  // with descriptors
  allow_own_signals(rules);
  allow_threads(rules);
  allow_memory(rules);
}

}  // namespace

Result<void> install(Filter filter) {
  Rules rules;
  rules.allow(kRunning);
  rules.allow(kDescriptors);
  for (const int command : kDescriptorCommands) {
    rules.allow("fcntl", {equal(1, static_cast<std::uint64_t>(command))});
  }
  switch (filter) {
    case Filter::collector:
    case Filter::telling_collector:
      add_collector(rules, filter == Filter::telling_collector);
      break;
    case Filter::starter:
      allow_serving(rules);
      allow_sending(rules);
      rules.allow(kProcesses);
      // fork(2), and what the processes that come of it need; each of them confines itself further.
      rules.allow({"clone", "prctl", "tgkill"});
      rules.answer("clone3", SCMP_ACT_ERRNO(ENOSYS));
      allow_memory(rules);
      // fstat(2) is this with an empty path in newer libraries.
      rules.allow({"newfstatat"});
      break;
    case Filter::web:
      allow_serving(rules);
      allow_sending(rules);
      allow_own_signals(rules);
      rules.allow("prctl", {equal(0, 15)});  // PR_SET_NAME
      allow_threads(rules);
      allow_memory(rules);
      rules.allow("newfstatat", {});
      rules.allow({"seccomp"});  // to restrict itself further
      break;
  }
  return rules.load();
}

Result<void> forbid_threads() {
  Rules rules(SCMP_ACT_ALLOW);
  rules.answer("clone", SCMP_ACT_ERRNO(EPERM));
  rules.answer("clone3", SCMP_ACT_ERRNO(EPERM));
  return rules.load();
}

}  // namespace tacho::process
