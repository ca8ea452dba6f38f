#include "kernel/support/polls.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <ctime>

#include "kernel/support/threads.h"
#include "kernel/support/wire.h"

namespace tacho::kernel_test {
namespace {

/// One that is not open, and within the table of descriptors: select ignores what is beyond.
int no_descriptor() {
  const int number = ::dup(0);
  ::close(number);
  return number;
}

template <class... Arguments>
int call(long number, Arguments... arguments) {
  const long result = ::syscall(number, arguments...);
  return result < 0 ? -errno : static_cast<int>(result);
}

timespec timespec_of(int ms) {
  return {.tv_sec = ms / 1000, .tv_nsec = static_cast<long>(ms % 1000) * 1'000'000};
}

/// The set of one descriptor, for select.
fd_set set_of(int descriptor) {
  fd_set set;
  FD_ZERO(&set);
  FD_SET(descriptor, &set);
  return set;
}

int epoll_pwait2_on(int epoll, int timeout_ms) {
  epoll_event event{};
  timespec timeout = timespec_of(timeout_ms);
  return call(SYS_epoll_pwait2, epoll, &event, 1, timeout_ms < 0 ? nullptr : &timeout, nullptr, 0);
}

int epoll_pwait_on(int epoll, int timeout_ms) {
  epoll_event event{};
  return call(SYS_epoll_pwait, epoll, &event, 1, timeout_ms, nullptr, 0);
}

int ppoll_on(pollfd* descriptors, int timeout_ms) {
  timespec timeout = timespec_of(timeout_ms);
  return call(SYS_ppoll, descriptors, 1, timeout_ms < 0 ? nullptr : &timeout, nullptr, 0);
}

int pselect6_on(int descriptor, int timeout_ms) {
  fd_set set = set_of(descriptor);
  timespec timeout = timespec_of(timeout_ms);
  return call(SYS_pselect6, descriptor + 1, &set, nullptr, nullptr, timeout_ms < 0 ? nullptr : &timeout, nullptr);
}

#ifdef SYS_select
int select_on(int descriptor, int timeout_ms) {
  fd_set set = set_of(descriptor);
  timeval timeout{.tv_sec = timeout_ms / 1000, .tv_usec = static_cast<suseconds_t>(timeout_ms % 1000) * 1000};
  return call(SYS_select, descriptor + 1, &set, nullptr, nullptr, timeout_ms < 0 ? nullptr : &timeout);
}
#endif

std::vector<PollCall> make_calls() {
  std::vector<PollCall> calls{
      {"epoll_pwait", [](const Watchable& w, int ms) { return epoll_pwait_on(w.epoll(), ms); },
       [] { return epoll_pwait_on(no_descriptor(), -1); }},
      {"ppoll",
       [](const Watchable& w, int ms) {
         pollfd descriptor{.fd = w.pipe(), .events = POLLIN, .revents = 0};
         return ppoll_on(&descriptor, ms);
       },
       [] { return ppoll_on(nullptr, -1); }},  // EFAULT: a descriptor that is not open is an answer for poll
      {"pselect6", [](const Watchable& w, int ms) { return pselect6_on(w.pipe(), ms); },
       [] { return pselect6_on(no_descriptor(), -1); }},
  };
  if (epoll_pwait2_on(no_descriptor(), 0) != -ENOSYS) {
    calls.push_back({"epoll_pwait2", [](const Watchable& w, int ms) { return epoll_pwait2_on(w.epoll(), ms); },
                     [] { return epoll_pwait2_on(no_descriptor(), -1); }});
  }
#ifdef SYS_epoll_wait
  calls.push_back({"epoll_wait",
                   [](const Watchable& w, int ms) {
                     epoll_event event{};
                     return call(SYS_epoll_wait, w.epoll(), &event, 1, ms);
                   },
                   [] {
                     epoll_event event{};
                     return call(SYS_epoll_wait, no_descriptor(), &event, 1, -1);
                   }});
  calls.push_back({"poll",
                   [](const Watchable& w, int ms) {
                     pollfd descriptor{.fd = w.pipe(), .events = POLLIN, .revents = 0};
                     return call(SYS_poll, &descriptor, 1, ms);
                   },
                   [] { return call(SYS_poll, nullptr, 1, -1); }});
  calls.push_back({"select", [](const Watchable& w, int ms) { return select_on(w.pipe(), ms); },
                   [] { return select_on(no_descriptor(), -1); }});
#endif
  return calls;
}

}  // namespace

Watchable::Watchable(bool readable) {
  std::array<int, 2> ends{};
  must(::pipe2(ends.data(), O_CLOEXEC) == 0, "pipe2");
  out_.reset(ends[0]);
  in_.reset(ends[1]);
  epoll_.reset(::epoll_create1(EPOLL_CLOEXEC));
  epoll_event event{};
  event.events = EPOLLIN;
  must(::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, out_.get(), &event) == 0, "epoll_ctl");
  if (readable) {
    make_readable();
  }
}

void Watchable::make_readable() const {
  must(::write(in_.get(), "x", 1) == 1, "write");
}

const std::vector<PollCall>& poll_calls() {
  static const std::vector<PollCall> calls = make_calls();
  return calls;
}

bool only_sleeps(const Page& page) {
  return page.count("tacho_probe_attached", {{"probe", "poll"}, {"hook", "poll"}, {"method", "scheduler"}}) == 1;
}

void await_rest(Running& tacho, const Child& child, std::size_t threads) {
  REQUIRE(tacho.wait_for([&] { return all_asleep(child.pid(), threads); }));
}

double completed_polls(const Page& page, const Labels& target, const std::string& suffix) {
  return page.sum("tacho_poll_duration_seconds" + suffix, target);
}

}  // namespace tacho::kernel_test
