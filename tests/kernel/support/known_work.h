#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "bpf/anatomy.h"
#include "kernel/support/child.h"
#include "kernel/support/running.h"
#include "kernel/support/span.h"
#include "kernel/support/wire.h"

// Requests whose work waits for something of every kind, and how long, by the server's own and the kernel's accounts.

namespace tacho::kernel_test {

/// Seconds by part; what a server cannot tell exactly is between bounds.
struct Known {
  std::array<Span, TACHO_PARTS> parts{};

  Span& operator[](request_part part) { return parts.at(part); }
  const Span& operator[](request_part part) const { return parts.at(part); }
  Known& operator+=(const Known& other);
};

/// Sleeps on CLOCK_MONOTONIC. @return until when, at the least
std::int64_t nap(std::chrono::nanoseconds time);

/// A thread that joins a target is known once it has slept, or was preempted.
void become_known();

/// What this thread spent so far, by clocks that have nothing to do with tacho.
class ThreadClock {
 public:
  /// Of the thread that makes it.
  ThreadClock();

  struct Reading {
    double wall = 0;
    double cpu = 0;
    double runqueue = 0;  ///< waiting for a CPU, preempted or woken (schedstat)

    [[nodiscard]] double off_cpu() const { return wall - cpu - runqueue; }
    Reading operator-(const Reading& o) const { return {wall - o.wall, cpu - o.cpu, runqueue - o.runqueue}; }
  };
  [[nodiscard]] Reading read() const;

 private:
  UniqueFd schedstat_;
};

/// A server elsewhere that takes 5 ms for a call of 5 bytes, and answers 7.
class SlowServer {
 public:
  SlowServer();
  [[nodiscard]] std::uint16_t port() const { return port_; }
  [[nodiscard]] UniqueFd connect() const { return connect_tcp(port_); }

 private:
  Child child_;
  std::uint16_t port_;
};

/// Takes a CPU whenever it can, at the same priority, until it goes; of a process that no tacho watches.
class Hog {
 public:
  explicit Hog(unsigned cpu);
  ~Hog() { child_.kill(); }

 private:
  Child child_;
};

/// A request's work: every kind of wait. To be made by the thread that does it.
class Work {
 public:
  explicit Work(const SlowServer& dependency);
  ~Work();

  /// Calls the dependency.
  void call();
  /// Does all of it; adds to `known`. @param slack so many seconds earlier it may have begun
  void run(Known& known, double slack = 0);
  /// It was answered at that time, at the earliest (now_ns()): what came behind run() is its own, too.
  void answered(Known& known, std::int64_t at) const;
  [[nodiscard]] const ThreadClock& clock() const { return clock_; }

 private:
  /// Holds a mutex for 4 ms whenever it is asked to.
  void hold();
  void contend();
  template <class Wait>
  void wait(Known& known, request_part part, Wait wait);

  ThreadClock clock_;
  /// CPU time within waits, by the kernel's account, in s. It has the way from the wake-up onto the CPU, of which the
  /// events tell as of a wait for one: the kernel does not read its clock in between (rq_clock_skip_update()).
  double waking_ = 0;
  std::int64_t done_ns_ = 0;
  UniqueFd connection_;
  UniqueFd file_;
  std::mutex mutex_;
  std::atomic<bool> wanted_ = false;
  std::atomic<bool> held_ = false;
  std::atomic<bool> stop_ = false;
  std::thread holder_;
};

double part(const Watched& where, request_part part);
/// Requests by mode (tacho_request_serving_total).
double served(const Watched& where, const std::string& mode);

/// What does not agree, in words.
using Wrong = std::vector<std::string>;

/// Within the bounds, give or take 5 % or 100 us a request?
void compare(Wrong& wrong, const std::string& what, double seen, const Span& known, int requests);
/// The same of one part of the target's requests, and of all of them from the hand-over on.
void compare(Wrong& wrong, const Watched& where, request_part part, const Span& known, int requests);
void compare(Wrong& wrong, const Watched& where, const Known& known, int requests);
/// Checks that all parts from the hand-over on add up to the service time, and with those before to the duration.
void check_sums(const Watched& where);

/// Checks that something agrees once in five times. Guests of Firecracker do not tell of what is switched and woken
/// while a thread of their host's agent runs: then a part takes milliseconds from another one, and the next time from
/// none.
void check_agrees(const std::function<Wrong()>& attempt);

}  // namespace tacho::kernel_test
