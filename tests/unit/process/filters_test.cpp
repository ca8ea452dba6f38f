#include "process/filters.h"

#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <cerrno>
#include <csignal>
#include <functional>
#include <string>
#include <vector>

#include "boundary/lane.h"

using namespace tacho;

namespace {

/// What a process comes to that has installed that filter.
bool may(process::Filter filter, const std::function<bool()>& what) {
  const pid_t child = ::fork();
  if (child == 0) {
    const bool installed = ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && process::install(filter);
    ::_exit(!installed ? 2 : what() ? 0 : 1);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  REQUIRE(WEXITSTATUS(status) != 2);
  return WEXITSTATUS(status) == 0;
}

/// A system call that is refused by a filter, and comes to something else without one: its arguments are no good.
struct Call {
  std::string name;
  long number;
  std::array<long, 5> arguments = {};
};

/// Of bpf(2), which looks at the command before it looks at the attributes, of which there are none here.
Call bpf_call(const std::string& name, int command) {
  return {"bpf " + name, SYS_bpf, {command, 0, 0}};
}

std::vector<Call> calls_of_attackers() {
  return {
      bpf_call("PROG_LOAD", BPF_PROG_LOAD),
      bpf_call("BTF_LOAD", BPF_BTF_LOAD),
      bpf_call("RAW_TRACEPOINT_OPEN", BPF_RAW_TRACEPOINT_OPEN),
      bpf_call("PROG_ATTACH", BPF_PROG_ATTACH),
      bpf_call("OBJ_PIN", BPF_OBJ_PIN),
      bpf_call("OBJ_GET", BPF_OBJ_GET),
      bpf_call("PROG_GET_FD_BY_ID", BPF_PROG_GET_FD_BY_ID),
      bpf_call("MAP_GET_FD_BY_ID", BPF_MAP_GET_FD_BY_ID),
      bpf_call("LINK_UPDATE", BPF_LINK_UPDATE),
      bpf_call("TASK_FD_QUERY", BPF_TASK_FD_QUERY),
      {"execve", SYS_execve},
      {"execveat", SYS_execveat, {-1}},
      {"perf_event_open", SYS_perf_event_open},
      {"ptrace", SYS_ptrace, {PTRACE_PEEKDATA, 1}},
      {"process_vm_readv", SYS_process_vm_readv, {1, 0, 1, 0, 1}},
      {"process_vm_writev", SYS_process_vm_writev, {1, 0, 1, 0, 1}},
      {"pidfd_open", SYS_pidfd_open, {-1}},
      {"pidfd_getfd", SYS_pidfd_getfd, {-1}},
      {"kill", SYS_kill, {::getpid(), 0}},
      {"connect", SYS_connect, {-1}},
      {"bind", SYS_bind, {-1}},
      {"listen", SYS_listen, {-1}},
      {"accept4", SYS_accept4, {-1}},
      {"setns", SYS_setns, {-1}},
      {"unshare", SYS_unshare, {0}},
      {"mount", SYS_mount},
      {"chroot", SYS_chroot},
      {"open_by_handle_at", SYS_open_by_handle_at, {-1}},
      {"init_module", SYS_init_module},
      {"io_uring_setup", SYS_io_uring_setup},
      {"userfaultfd", SYS_userfaultfd, {-1}},
      {"keyctl", SYS_keyctl, {-1}},
      {"setuid", SYS_setuid, {-1}},
      {"renameat2", SYS_renameat2, {-1}},
      {"chmod", SYS_fchmodat, {-1}},
      // Of another process; that there is one is looked at before what is asked.
      {"prlimit64", SYS_prlimit64, {0x7ffffffe, RLIMIT_NOFILE}},
      {"fork", SYS_clone, {SIGCHLD}},
  };
}

bool is_refused(const Call& call) {
  const auto& [a, b, c, d, e] = call.arguments;
  errno = 0;
  const long result = ::syscall(call.number, a, b, c, d, e);
  if (result == 0 && call.number == SYS_clone) {
    ::_exit(0);  // the child
  }
  return result < 0 && errno == EPERM;
}

}  // namespace

TEST_CASE("the collector loads and runs no program, reads no process, and makes no connection") {
  for (const Call& call : calls_of_attackers()) {
    CAPTURE(call.name);
    for (const process::Filter filter : {process::Filter::collector, process::Filter::telling_collector}) {
      CHECK(may(filter, [&] { return is_refused(call); }));
    }
    // Else it tells nothing.
    const pid_t child = ::fork();
    if (child == 0) {
      ::_exit(is_refused(call) ? 1 : 0);
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK((::geteuid() != 0 || status == 0));
  }
}

TEST_CASE("the collector reads and writes maps, and sets its own limits") {
  for (const process::Filter filter : {process::Filter::collector, process::Filter::telling_collector}) {
    for (const int command : {BPF_MAP_CREATE, BPF_MAP_LOOKUP_ELEM, BPF_MAP_UPDATE_BATCH, BPF_LINK_CREATE}) {
      CHECK(may(filter, [&] { return ::syscall(SYS_bpf, command, nullptr, 0) < 0 && errno != EPERM; }) ==
            (::geteuid() == 0));
    }
    CHECK(may(filter, [] {
      rlimit limit{};
      return ::getrlimit(RLIMIT_NOFILE, &limit) == 0 && ::setrlimit(RLIMIT_NOFILE, &limit) == 0;
    }));
  }
}

TEST_CASE("the collector makes lanes that take few answers, and changes nothing else of a socket") {
  using process::Filter;
  for (const Filter filter : {Filter::collector, Filter::telling_collector}) {
    CHECK(may(filter, [] {
      const auto lane = boundary::make_lane();
      return lane && boundary::limit_unread(lane->first.get());
    }));
    const auto lane = boundary::make_lane();
    REQUIRE(lane);
    CHECK_FALSE(may(filter, [&] {
      const int on = 1;
      return ::setsockopt(lane->first.get(), SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) == 0;
    }));
    CHECK_FALSE(may(filter, [] { return ::socket(AF_INET, SOCK_STREAM, 0) >= 0; }));
  }
}

TEST_CASE("who serves opens no file and makes no lane") {
  CHECK_FALSE(may(process::Filter::web, [] { return ::open("/proc/self/status", O_RDONLY) >= 0; }));
  CHECK_FALSE(may(process::Filter::web, [] { return boundary::make_lane().has_value(); }));
}
