// What threads do: each state, against what the kernel's own accounting and the workload say.

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "kernel/support/child.h"
#include "kernel/support/running.h"
#include "kernel/support/span.h"
#include "kernel/support/storage.h"
#include "kernel/support/threads.h"
#include "kernel/support/wire.h"

using tacho::UniqueFd;
using namespace tacho::kernel_test;

namespace {

constexpr double kWork = 0.15;  // seconds
constexpr int kSleeps = 3;
constexpr long kSleepNs = 40'000'000;

void sleep_for(long ns) {
  const timespec time{.tv_sec = 0, .tv_nsec = ns};
  must(::syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &time, nullptr) == 0, "clock_nanosleep");
}

/// What a child's work came to.
struct Done {
  ThreadStates states;
  SchedStat truth;
  Span passed;  ///< from before the work to after it
  Page before{""};
  Page after{""};
  double delayed = 0;  ///< growth of the sum of tacho_runqueue_delay_seconds
};

/// Has a child in the cgroup do the work between two looks at it, which come while it sleeps. Its threads must still be
/// there at the end, `threads` with the main one.
Done work_once(Running& tacho, const Cgroup& cgroup, const std::function<void()>& work, std::size_t threads) {
  const Labels target{{"cgroup", cgroup.path()}};
  Child child(cgroup.directory(), [&work](Line& parent) {
    parent.tell();
    while (parent.hear() != 0) {
      work();
      parent.tell();
    }
  });
  (void)child.hear();
  Done done;
  SchedStat first;
  const auto look = [&](Page& page, SchedStat& stat, std::size_t count) {
    return timed([&] {
      REQUIRE(tacho.wait_for([&] { return all_asleep(child.pid(), count); }));
      page = tacho.page();
      stat = schedstat(child.pid());
    });
  };
  const Moment before = look(done.before, first, 1);
  child.tell();
  (void)child.hear();
  const Moment after = look(done.after, done.truth, threads);
  done.truth = done.truth - first;
  done.states = thread_states(done.after, target) - thread_states(done.before, target);
  done.passed = between(before, after);
  const auto delay = [&](const Page& page) { return page.value("tacho_runqueue_delay_seconds_sum", target); };
  done.delayed = delay(done.after) - delay(done.before);
  if (threads == 1) {
    child.tell(0);
    child.finish();
  }
  return done;
}

/// The kernel's run time is told by another clock, which leaves out time in interrupts and stolen by the host. And some
/// kernels switch without telling anybody (here: away from threads of process 1), a few times in a second; what a
/// thread then runs is counted as waiting.
Approx running_of(const Done& done) {
  return Approx(done.truth.running).epsilon(0.05).margin(0.01);
}
Approx runnable_of(const Done& done) {
  return Approx(done.truth.runnable).epsilon(0.05).margin(0.02);
}

void check_against_schedstat(const Done& done) {
  CHECK(done.states.running == running_of(done));
  CHECK(done.states.runnable == runnable_of(done));
  CHECK(done.delayed <= done.states.runnable + 1e-6);
  CHECK(done.delayed == Approx(done.states.runnable).epsilon(0.05).margin(0.02));
}

/// What a host that stole time or a switch that nobody told of has spoiled is done again; what is wrong always stays
/// so.
Done work_in(Running& tacho, const Cgroup& cgroup, const std::function<void()>& work, std::size_t threads = 1) {
  Done done;
  for (int attempt = 0; attempt < 3; ++attempt) {
    done = work_once(tacho, cgroup, work, threads);
    if (done.states.running == running_of(done) && done.states.runnable == runnable_of(done)) {
      break;
    }
  }
  return done;
}

void check_sleeps(Running& tacho, const Cgroup& cgroup) {
  const Done done = work_in(tacho, cgroup, [] {
    for (int i = 0; i < kSleeps; ++i) {
      sleep_for(kSleepNs);
    }
  });
  const Labels target{{"cgroup", cgroup.path()}};
  const double slept =
      off_cpu_in(done.after, target, "clock_nanosleep") - off_cpu_in(done.before, target, "clock_nanosleep");
  CHECK(slept >= kSleeps * kSleepNs * 1e-9 - 1e-4);
  CHECK(slept <= done.passed.most);
  CHECK(done.states.sleeping >= slept - 1e-9);
  CHECK(done.states.sleeping <= done.passed.most);
  CHECK(done.states.running < done.passed.most - slept);
  CHECK(done.states.blocked < 0.01);
  check_against_schedstat(done);
}

void check_spinning(Running& tacho, const Cgroup& cgroup) {
  const Done done = work_in(tacho, cgroup, [] { spin(kWork); });
  CHECK(done.states.running >= kWork * 0.9);
  check_against_schedstat(done);
  CHECK(done.states.sum() >= done.passed.least - 1e-4);
  CHECK(done.states.sum() <= done.passed.most + 1e-4);
}

}  // namespace

TEST_CASE("a thread that computes runs for as long as its CPU clock says") {
  const Watched where;
  check_spinning(shared(), where.cgroup());
}

TEST_CASE("a thread that sleeps is asleep, in the system call that it called") {
  const Watched where;
  check_sleeps(shared(), where.cgroup());
}

TEST_CASE("raw tracepoints and a table of threads count the same") {
  auto config = watching(playground() + "/*");
  config.probes.sched.attach = tacho::config::Attach::raw_tracepoint;
  config.probes.socket.enabled = false;
  config.probes.poll.enabled = false;
  Running tacho(config);
  const auto attached = [&](const char* hook, const char* method) {
    return tacho.page().value("tacho_probe_attached", {{"probe", "sched"}, {"hook", hook}, {"method", method}});
  };
  CHECK(attached("threads", "raw_tracepoint") == 1);
  CHECK(attached("state", "hash") == 1);
  const Cgroup cgroup(playground() + "/" + unique_name());
  REQUIRE(tacho.wait_for([&] { return tacho.watches({{"cgroup", cgroup.path()}}); }));
  check_spinning(tacho, cgroup);
  check_sleeps(tacho, cgroup);
  CHECK(tacho.wait_for([&] { return thread_states(tacho.page(), {{"cgroup", cgroup.path()}}).sum() > 0; }));
  check_threads(tacho, {{"cgroup", cgroup.path()}}, 0);
}

TEST_CASE("two threads that share a CPU wait for each other") {
  const Watched where;
  const Done done = work_in(
      shared(), where.cgroup(),
      [] {
        for (int i = 0; i < 2; ++i) {
          std::thread([] {
            pin_to(0);
            spin(kWork);
            ::pause();
          }).detach();
        }
      },
      3);
  CHECK(done.states.running >= 2 * kWork * 0.9);
  // While one runs the other waits.
  CHECK(done.states.runnable >= kWork * 0.8);
  check_against_schedstat(done);
}

TEST_CASE("a parent is blocked while its vfork child has not executed anything") {
  const Watched where;
  const Done done = work_in(shared(), where.cgroup(), [] {
    const pid_t pid = ::vfork();  // NOLINT(bugprone-unsafe-functions): what it makes the parent wait for is the subject
    if (pid == 0) {
      sleep_for(kSleepNs);
      ::_exit(0);
    }
    must(pid > 0, "vfork");
  });
  CHECK(done.states.blocked >= kSleepNs * 1e-9 - 1e-4);
  CHECK(done.states.blocked <= done.passed.most);
  CHECK(done.states.sleeping >= kSleepNs * 1e-9 - 1e-4);
#ifdef SYS_vfork
  const Labels target{{"cgroup", where.path()}};
  CHECK(off_cpu_in(done.after, target, "vfork") == Approx(done.states.blocked).margin(0.005));
#endif
}

TEST_CASE("what lies in memory and what on a disk is told apart") {
  CHECK(is_in_memory("/dev"));  // devtmpfs is tmpfs
  CHECK_FALSE(is_in_memory("/proc"));
}

TEST_CASE("a thread that waits for a disk is in iowait") {
  // Not /tmp, which may be in memory.
  const std::string file = std::filesystem::current_path() / ("tacho-sched-" + std::to_string(::getpid()));
  const Watched where;
  const Done done = work_in(shared(), where.cgroup(), [&file] {
    const UniqueFd own(::open(file.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    must(static_cast<bool>(own), "open");
    const std::vector<char> data(std::size_t{1} << 20, 'x');
    for (int i = 0; i < 8; ++i) {
      must(::write(own.get(), data.data(), data.size()) == static_cast<ssize_t>(data.size()), "write");
      must(::fdatasync(own.get()) == 0, "fdatasync");
    }
  });
  std::filesystem::remove(file);
  if (is_in_memory(std::filesystem::current_path())) {
    WARN("skipped: nothing waits for a disk in " << std::filesystem::current_path() << ", which is in memory");
    return;
  }
  const Labels target{{"cgroup", where.path()}};
  CHECK(done.states.iowait > 0);
  CHECK(done.states.iowait <= done.passed.most);
  CHECK(off_cpu_in(done.after, target, "fdatasync") + off_cpu_in(done.after, target, "write") >=
        done.states.iowait / 2);
  check_against_schedstat(done);
}

TEST_CASE("all time off CPU is told apart by system call") {
  const Watched where;
  const Done done = work_in(shared(), where.cgroup(), [] {
    sleep_for(kSleepNs);
    spin(kWork / 10);
  });
  const Labels target{{"cgroup", where.path()}};
  const double by_call = off_cpu(done.after, target);
  CHECK(by_call == Approx(thread_states(done.after, target).off_cpu()).margin(1e-6));
  // The child waits for us in read().
  CHECK(off_cpu_in(done.after, target, "read") > 0);
  CHECK(off_cpu_in(done.after, target, "other") == Approx(0).margin(0.01));
}
