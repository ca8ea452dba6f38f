#include "kernel/support/known_work.h"

#include <fcntl.h>
#include <poll.h>
#include <spdlog/fmt/fmt.h>
#include <spdlog/fmt/ranges.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <string>

#include "kernel/support/threads.h"
#include "probes/slow_requests.h"

namespace tacho::kernel_test {
namespace {

using namespace std::chrono_literals;

double seconds_of(clockid_t clock) {
  timespec now{};
  must(::clock_gettime(clock, &now) == 0, "clock_gettime");
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

/// Readable once, that much later.
UniqueFd timer(std::chrono::nanoseconds time) {
  UniqueFd fd(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC));
  const itimerspec when{.it_interval = {}, .it_value = {.tv_sec = 0, .tv_nsec = time.count()}};
  must(fd && ::timerfd_settime(fd.get(), 0, &when, nullptr) == 0, "timerfd");
  return fd;
}

void answer_slowly(Line& parent) {
  const UniqueFd listener = listen_tcp();
  parent.tell(port_of(listener));
  const UniqueFd connection = accept_from(listener);
  for (std::array<char, 5> call{}; ::read(connection.get(), call.data(), call.size()) == 5;) {
    nap(5ms);
    send_once(connection, 7);
  }
}

}  // namespace

Known& Known::operator+=(const Known& other) {
  for (std::size_t i = 0; i < parts.size(); ++i) {
    parts.at(i) += other.parts.at(i);
  }
  return *this;
}

std::int64_t nap(std::chrono::nanoseconds time) {
  const std::int64_t until = now_ns() + time.count();
  const timespec left{.tv_sec = 0, .tv_nsec = time.count()};
  must(::clock_nanosleep(CLOCK_MONOTONIC, 0, &left, nullptr) == 0, "clock_nanosleep");
  return until;
}

void become_known() {
  nap(100us);
}

ThreadClock::ThreadClock() : schedstat_(::open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC)) {
  must(static_cast<bool>(schedstat_), "schedstat");
}

ThreadClock::Reading ThreadClock::read() const {
  std::array<char, 128> text{};
  const ssize_t length = ::pread(schedstat_.get(), text.data(), text.size(), 0);
  must(length > 0, "schedstat");
  const std::string_view line(text.data(), static_cast<std::size_t>(length));
  const std::string_view second = line.substr(line.find(' ') + 1);
  std::uint64_t runqueue_ns = 0;
  must(std::from_chars(second.begin(), second.end(), runqueue_ns).ec == std::errc{}, "schedstat");
  return {.wall = seconds_of(CLOCK_MONOTONIC),
          .cpu = seconds_of(CLOCK_THREAD_CPUTIME_ID),
          .runqueue = static_cast<double>(runqueue_ns) * 1e-9};
}

SlowServer::SlowServer() : child_({}, answer_slowly), port_(static_cast<std::uint16_t>(child_.hear())) {}

Hog::Hog(unsigned cpu)
    : child_({}, [cpu](Line& parent) {
        pin_to(cpu);
        parent.tell();
        for (volatile bool on = true; on;) {
        }
      }) {
  (void)child_.hear();
}

Work::Work(const SlowServer& dependency) : connection_(dependency.connect()), holder_([this] { hold(); }) {
  std::array<char, 32> name{"/var/tmp/tacho-anatomy-XXXXXX"};
  file_ = UniqueFd(::mkstemp(name.data()));
  must(static_cast<bool>(file_), "mkstemp");
  must(::unlink(name.data()) == 0, "unlink");
}

Work::~Work() {
  stop_ = true;
  holder_.join();
}

void Work::hold() {
  while (!stop_) {
    nap(50us);
    if (wanted_.exchange(false)) {
      const std::lock_guard lock(mutex_);
      held_ = true;
      nap(4ms);
    }
  }
}

void Work::contend() {
  const std::lock_guard lock(mutex_);
  held_ = false;
}

void Work::call() {
  must(::write(connection_.get(), "12345", 5) == 5, "write");
  std::array<char, 7> answer{};
  must(::read(connection_.get(), answer.data(), answer.size()) == 7, "read");
}

template <class Wait>
void Work::wait(Known& known, request_part part, Wait wait) {
  const ThreadClock::Reading before = clock_.read();
  wait();
  const ThreadClock::Reading spent = clock_.read() - before;
  known[part] += {spent.off_cpu(), spent.off_cpu()};
  waking_ += spent.cpu;
}

void Work::run(Known& known, double slack) {
  const ThreadClock::Reading from = clock_.read();
  waking_ = 0;
  Known waits;
  spin(0.002);
  wait(waits, TACHO_PART_SLEEP, [] { nap(3ms); });
  wanted_ = true;
  while (!held_) {
    ::sched_yield();
  }
  wait(waits, TACHO_PART_LOCK, [this] { contend(); });
  wait(waits, TACHO_PART_DISK, [this] {
    const std::string text(65536, 'x');
    must(::pwrite(file_.get(), text.data(), text.size(), 0) == 65536, "pwrite");
    must(::fsync(file_.get()) == 0, "fsync");
  });
  wait(waits, TACHO_PART_NETWORK, [this] { call(); });
  const UniqueFd event = timer(2500us);
  wait(waits, TACHO_PART_EVENT, [&event] {
    pollfd one{.fd = event.get(), .events = POLLIN, .revents = 0};
    must(::poll(&one, 1, -1) == 1, "poll");
  });
  const UniqueFd other = timer(3500us);
  wait(waits, TACHO_PART_OTHER, [&other] {
    std::uint64_t expirations = 0;
    must(::read(other.get(), &expirations, sizeof(expirations)) == sizeof(expirations), "read");
  });
  const ThreadClock::Reading spent = clock_.read() - from;
  waits[TACHO_PART_RUNQUEUE] = {spent.runqueue, spent.runqueue + slack + waking_};
  double off = 0;
  for (std::size_t i = TACHO_PART_LOCK; i < TACHO_PARTS; ++i) {
    off += waits.parts.at(i).least;
  }
  // Whatever else kept the thread from running: the machine's host.
  waits[TACHO_PART_CPU] = {spent.cpu - waking_, spent.wall + slack - off - spent.runqueue};
  known += waits;
  done_ns_ = now_ns();
}

void Work::answered(Known& known, std::int64_t at) const {
  const double behind = static_cast<double>(at - done_ns_) * 1e-9;
  for (const request_part part : {TACHO_PART_CPU, TACHO_PART_RUNQUEUE}) {
    known[part].most += behind;
  }
}

double part(const Watched& where, request_part part) {
  return where.value("tacho_request_time_seconds_total", {{"part", std::string(probes::kPartNames.at(part))}});
}

double served(const Watched& where, const std::string& mode) {
  return where.value("tacho_request_serving_total", {{"mode", mode}});
}

void compare(Wrong& wrong, const std::string& what, double seen, const Span& known, int requests) {
  const double slack = std::max(known.most * 0.05, requests * 100e-6);
  if (seen < known.least - slack || seen > known.most + slack) {
    wrong.push_back(fmt::format("{}: {} s, known are {} to {}", what, seen, known.least, known.most));
  }
}

void compare(Wrong& wrong, const Watched& where, request_part one, const Span& known, int requests) {
  compare(wrong, std::string(probes::kPartNames.at(one)), part(where, one), known, requests);
}

void compare(Wrong& wrong, const Watched& where, const Known& known, int requests) {
  for (std::size_t i = TACHO_PART_HANDOVER; i < TACHO_PARTS; ++i) {
    const auto each = static_cast<request_part>(i);
    compare(wrong, where, each, known[each], requests);
  }
}

void check_sums(const Watched& where) {
  double service = 0;
  for (std::size_t i = TACHO_PART_HANDOVER; i < TACHO_PARTS; ++i) {
    service += part(where, static_cast<request_part>(i));
  }
  CHECK(service == Approx(where.sum("tacho_request_service_seconds")).epsilon(1e-3));
  const double before = part(where, TACHO_PART_QUEUE) + part(where, TACHO_PART_RECEIVE);
  CHECK(service + before == Approx(where.sum("tacho_request_duration_seconds")).epsilon(1e-6));
}

void check_agrees(const std::function<Wrong()>& attempt) {
  constexpr int kAttempts = 5;
  Wrong wrong = attempt();
  for (int i = 1; i < kAttempts && !wrong.empty(); ++i) {
    WARN("once more: " << fmt::format("{}", fmt::join(wrong, "; ")));
    wrong = attempt();
  }
  CHECK(wrong == Wrong{});
}

}  // namespace tacho::kernel_test
