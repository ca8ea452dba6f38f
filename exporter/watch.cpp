#include "watch.h"

#include <poll.h>
#include <pthread.h>
#include <spdlog/spdlog.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstring>

namespace tacho {
namespace {

using namespace std::chrono_literals;

constexpr auto kLookEvery = 1s;
constexpr auto kReportEvery = 60s;

/// Ends the program after Watch::kTimeToEnd and a little, on whichever thread: even the lines that this one logs may
/// wait for a lock that is never given back.
void end_for_certain() {
  struct sigaction end{};
  end.sa_handler = [](int) { ::_exit(0); };
  ::sigaction(SIGALRM, &end, nullptr);
  const itimerval once{.it_interval = {}, .it_value = {.tv_sec = 1, .tv_usec = 0}};
  ::setitimer(ITIMER_REAL, &once, nullptr);
}

}  // namespace

Result<std::unique_ptr<Watch>> Watch::start(const Liveness& liveness) {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  std::unique_ptr<Watch> watch(new Watch(liveness));
  if (::pthread_sigmask(SIG_BLOCK, &signals, nullptr) != 0) {
    return fail_errno("cannot block signals");
  }
  watch->signals_ = UniqueFd(::signalfd(-1, &signals, SFD_NONBLOCK | SFD_CLOEXEC));
  watch->ending_ = UniqueFd(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  watch->done_ = UniqueFd(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (!watch->signals_ || !watch->ending_ || !watch->done_) {
    return fail_errno("cannot receive signals");
  }
  watch->thread_ = std::thread([raw = watch.get()] { raw->run(); });
  ::pthread_setname_np(watch->thread_.native_handle(), "tacho-watch");
  return watch;
}

Watch::~Watch() {
  ::eventfd_write(done_.get(), 1);
  if (thread_.joinable()) {
    thread_.join();
  }
}

void Watch::run() {
  std::array<pollfd, 2> events{pollfd{signals_.get(), POLLIN, 0}, pollfd{done_.get(), POLLIN, 0}};
  while (true) {
    auto wait = std::chrono::ceil<std::chrono::milliseconds>(kLookEvery);
    if (signal_ != 0) {
      wait = std::max(0ms, std::chrono::ceil<std::chrono::milliseconds>(end_ - Liveness::Clock::now()));
    }
    ::poll(events.data(), events.size(), static_cast<int>(wait.count()));
    if ((events[1].revents & POLLIN) != 0) {
      return;
    }
    if ((events[0].revents & POLLIN) != 0) {
      take_signal();
    }
    report();
    if (signal_ != 0 && Liveness::Clock::now() >= end_) {
      if (only_kernel_is_left_) {
        spdlog::info("ended; the kernel goes on detaching the programs");
      } else {
        spdlog::warn("ending without waiting for what is under way any longer");
      }
      ::_exit(0);
    }
  }
}

void Watch::take_signal() {
  signalfd_siginfo info{};
  if (::read(signals_.get(), &info, sizeof(info)) != sizeof(info) || signal_ != 0) {
    return;
  }
  end_ = Liveness::Clock::now() + kTimeToEnd;
  signal_ = static_cast<int>(info.ssi_signo);
  end_for_certain();
  spdlog::info("ending on signal {}", ::strsignal(signal_));
  ::eventfd_write(ending_.get(), 1);
}

void Watch::report() {
  const auto stuck = liveness_.stuck();
  const auto now = Liveness::Clock::now();
  if (stuck && (stuck->what != reported_ || now >= next_report_)) {
    spdlog::error("{}; /-/healthy and /-/ready say so", stuck->text());
    reported_ = stuck->what;
    next_report_ = now + kReportEvery;
  } else if (!stuck && !reported_.empty()) {
    spdlog::info("{} goes on", reported_);
    reported_.clear();
  }
}

}  // namespace tacho
