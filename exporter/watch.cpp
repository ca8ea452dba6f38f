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
#include <utility>

#include "process/capabilities.h"

namespace tacho {
namespace {

using namespace std::chrono_literals;

constexpr auto kLookEvery = 1s;

/// Ends the program after Watch::kTimeToEnd and a little, on whichever thread: even the lines that this one logs may
/// wait for a lock that is never given back.
void end_for_certain(int code) {
  static std::sig_atomic_t exit_code = 0;
  exit_code = code;
  struct sigaction end{};
  end.sa_handler = [](int) { ::_exit(exit_code); };
  ::sigaction(SIGALRM, &end, nullptr);
  const itimerval once{.it_interval = {}, .it_value = {.tv_sec = 1, .tv_usec = 0}};
  ::setitimer(ITIMER_REAL, &once, nullptr);
}

}  // namespace

Result<std::unique_ptr<Watch>> Watch::start(const Liveness& liveness, Publish publish) {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  std::unique_ptr<Watch> watch(new Watch(liveness, std::move(publish)));
  if (::pthread_sigmask(SIG_BLOCK, &signals, nullptr) != 0) {
    return fail_errno("cannot block signals");
  }
  watch->signals_ = UniqueFd(::signalfd(-1, &signals, SFD_NONBLOCK | SFD_CLOEXEC));
  watch->wanted_ = UniqueFd(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  watch->ending_ = UniqueFd(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  watch->done_ = UniqueFd(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (!watch->signals_ || !watch->wanted_ || !watch->ending_ || !watch->done_) {
    return fail_errno("cannot receive signals");
  }
  watch->thread_ = std::thread([raw = watch.get()] {
    ::pthread_setname_np(::pthread_self(), "tacho-watch");
    // It needs none, and starts before the others give up theirs.
    if (auto done = process::keep_capabilities(0); !done) {
      spdlog::warn("the thread that ends tacho keeps its capabilities: {}", done.error().message);
    }
    raw->run();
  });
  return watch;
}

Watch::~Watch() {
  ::eventfd_write(done_.get(), 1);
  if (thread_.joinable()) {
    thread_.join();
  }
}

void Watch::end(int code) {
  code_ = code;
  ::eventfd_write(wanted_.get(), 1);
}

void Watch::run() {
  std::array<pollfd, 3> events{pollfd{signals_.get(), POLLIN, 0}, pollfd{done_.get(), POLLIN, 0},
                               pollfd{wanted_.get(), POLLIN, 0}};
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
    if ((events[2].revents & POLLIN) != 0) {
      ::eventfd_t count = 0;
      ::eventfd_read(wanted_.get(), &count);
      begin_to_end(SIGTERM);
    }
    report();
    if (signal_ != 0 && Liveness::Clock::now() >= end_) {
      if (only_kernel_is_left_) {
        spdlog::info("ended; the kernel goes on detaching the programs");
      } else {
        spdlog::warn("ending without waiting for what is under way any longer");
      }
      ::_exit(code_);
    }
  }
}

void Watch::take_signal() {
  signalfd_siginfo info{};
  if (::read(signals_.get(), &info, sizeof(info)) != sizeof(info) || signal_ != 0) {
    return;
  }
  begin_to_end(static_cast<int>(info.ssi_signo));
}

void Watch::begin_to_end(int signal) {
  if (signal_ != 0) {
    return;
  }
  end_ = Liveness::Clock::now() + kTimeToEnd;
  signal_ = signal;
  end_for_certain(code_);
  if (code_ == 0) {
    spdlog::info("ending on signal {}", ::strsignal(signal));
  }
  ::eventfd_write(ending_.get(), 1);
}

void Watch::report() {
  const auto stuck = liveness_.stuck();
  report_.look(stuck);
  if (publish_) {
    publish_(stuck);
  }
}

}  // namespace tacho
