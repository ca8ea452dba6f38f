// What the time of requests went to agrees with what the server's threads measured themselves.

#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <numeric>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "kernel/support/cgroup.h"
#include "kernel/support/child.h"
#include "kernel/support/datagrams.h"
#include "kernel/support/place.h"
#include "kernel/support/running.h"
#include "kernel/support/server.h"
#include "kernel/support/span.h"
#include "kernel/support/threads.h"
#include "kernel/support/wire.h"

using tacho::UniqueFd;
using namespace tacho::kernel_test;
using namespace std::chrono_literals;

namespace {

constexpr int kRequests = 11;
constexpr std::size_t kRequest = 10;
constexpr std::size_t kReply = 20;

constexpr std::array<const char*, 11> kParts{"queue", "receive", "handover", "cpu",   "runqueue", "lock",
                                             "disk",  "network", "event",    "sleep", "other"};

/// Seconds by part, as the server knows them: between bounds, for the machine may stop a CPU at any moment.
struct Known {
  Span handover;
  Span lock;
  Span network;
  Span event;
  Span sleep;
  Span other;
  double disk = 0;  ///< at most
  double cpu = 0;   ///< at least
  double service = 0;

  [[nodiscard]] double least_wait() const {
    return handover.least + lock.least + network.least + event.least + sleep.least + other.least;
  }
};

double seconds(std::int64_t ns) {
  return static_cast<double>(std::max<std::int64_t>(ns, 0)) * 1e-9;
}

double cpu_used() {
  timespec used{};
  must(::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used) == 0, "clock_gettime");
  return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) * 1e-9;
}

/// Does `work`, which waits until a time that it returns, maybe a little longer.
template <class Work>
Span waited(Work work) {
  const std::int64_t before = now_ns();
  const std::int64_t until = work();
  return {seconds(until - before), seconds(now_ns() - before)};
}

/// @return until when, at the least
std::int64_t nap(std::chrono::nanoseconds time) {
  const std::int64_t until = now_ns() + time.count();
  timespec left{.tv_sec = 0, .tv_nsec = time.count()};
  must(::clock_nanosleep(CLOCK_MONOTONIC, 0, &left, nullptr) == 0, "clock_nanosleep");
  return until;
}

/// A thread that joins a target is known once it has slept, or was preempted.
void become_known() {
  (void)nap(100us);
}

/// Readable once, that much later.
UniqueFd timer(std::chrono::nanoseconds time) {
  UniqueFd fd(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC));
  const itimerspec when{.it_interval = {}, .it_value = {.tv_sec = 0, .tv_nsec = time.count()}};
  must(fd && ::timerfd_settime(fd.get(), 0, &when, nullptr) == 0, "timerfd");
  return fd;
}

/// Holds a mutex for a while whenever it is asked to.
class Holder {
 public:
  explicit Holder(std::chrono::nanoseconds time) : thread_([this, time] { hold(time); }) {}
  ~Holder() {
    stop_ = true;
    thread_.join();
  }
  /// Has the mutex held.
  void prepare() {
    wanted_ = true;
    while (!held_) {
      std::this_thread::yield();
    }
  }
  /// Waits for it. @return until when, at the least
  std::int64_t contend() {
    const std::lock_guard lock(mutex_);
    held_ = false;
    return released_;
  }

 private:
  void hold(std::chrono::nanoseconds time) {
    while (!stop_) {
      nap(50us);
      if (wanted_.exchange(false)) {
        const std::lock_guard lock(mutex_);
        held_ = true;
        nap(time);
        released_ = now_ns();
      }
    }
  }

  std::mutex mutex_;
  std::int64_t released_ = 0;
  std::atomic<bool> wanted_ = false;
  std::atomic<bool> held_ = false;
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

/// A server elsewhere that takes 5 ms for a call of 5 bytes, and answers 7.
class SlowServer {
 public:
  SlowServer()
      : child_({},
               [this](Line& parent) {
                 const UniqueFd listener = listen_tcp();
                 parent.tell(port_of(listener));
                 const UniqueFd connection = accept_from(listener);
                 for (std::array<char, 5> call{}; ::read(connection.get(), call.data(), call.size()) == 5;) {
                   nap(5ms);
                   *answered_ = now_ns();
                   send_once(connection, 7);
                 }
               }),
        port_(static_cast<std::uint16_t>(child_.hear())) {}
  [[nodiscard]] std::uint16_t port() const { return port_; }
  [[nodiscard]] UniqueFd connect() const { return connect_tcp(port_); }
  /// When it sent its latest answer, at the earliest.
  [[nodiscard]] std::int64_t answered() const { return *answered_; }

 private:
  Shared<std::int64_t> answered_;
  Child child_;
  std::uint16_t port_;
};

/// A request's work: every kind of wait.
class Work {
 public:
  explicit Work(const SlowServer& dependency) : dependency_(dependency), connection_(dependency.connect()) {
    std::array<char, 32> name{"/var/tmp/tacho-anatomy-XXXXXX"};
    file_ = UniqueFd(::mkstemp(name.data()));
    must(static_cast<bool>(file_), "mkstemp");
    must(::unlink(name.data()) == 0, "unlink");
  }

  /// Calls the dependency. @return when it answered, at the earliest
  std::int64_t call() {
    must(::write(connection_.get(), "12345", 5) == 5, "write");
    std::array<char, 7> answer{};
    must(::read(connection_.get(), answer.data(), answer.size()) == 7, "read");
    return dependency_.answered();
  }

  /// @param start_ns when the request's service began
  void run(Known& known, std::int64_t start_ns) {
    const double cpu = cpu_used();
    spin(0.002);
    known.sleep += waited([] { return nap(3ms); });
    holder_.prepare();
    known.lock += waited([this] { return holder_.contend(); });
    known.disk += waited([this] {
                    const std::string text(65536, 'x');
                    must(::pwrite(file_.get(), text.data(), text.size(), 0) == 65536, "pwrite");
                    must(::fsync(file_.get()) == 0, "fsync");
                    return 0;
                  }).most;
    known.network += waited([this] { return call(); });
    const std::int64_t now = now_ns();
    const UniqueFd event = timer(2500us);
    known.event += waited([&] {
      pollfd one{.fd = event.get(), .events = POLLIN, .revents = 0};
      must(::poll(&one, 1, -1) == 1, "poll");
      return now + 2'500'000;
    });
    const std::int64_t then = now_ns();
    const UniqueFd other = timer(3500us);
    known.other += waited([&] {
      std::uint64_t expirations = 0;
      must(::read(other.get(), &expirations, sizeof(expirations)) == sizeof(expirations), "read");
      return then + 3'500'000;
    });
    known.cpu += cpu_used() - cpu;
    known.service += seconds(now_ns() - start_ns);
  }

 private:
  const SlowServer& dependency_;
  UniqueFd connection_;
  Holder holder_{4ms};
  UniqueFd file_;
};

double part(const Watched& where, const std::string& name) {
  return where.value("tacho_request_time_seconds_total", {{"part", name}});
}

double served(const Watched& where, const std::string& mode) {
  return where.value("tacho_request_serving_total", {{"mode", mode}});
}

/// Within the bounds, 5 % or 100 us a request.
void check_value(double seen, const Span& known) {
  const double slack = std::max(known.most * 0.05, kRequests * 100e-6);
  CAPTURE(known.least, known.most);
  CHECK(seen >= known.least - slack);
  CHECK(seen <= known.most + slack);
}

void check_part(const Watched& where, const std::string& name, const Span& known) {
  CAPTURE(name);
  check_value(part(where, name), known);
}

void check_parts(const Watched& where, const Known& known) {
  check_part(where, "handover", known.handover);
  check_part(where, "lock", known.lock);
  check_part(where, "network", known.network);
  check_part(where, "event", known.event);
  check_part(where, "sleep", known.sleep);
  check_part(where, "other", known.other);
  const double rest = known.handover.most + known.service - known.least_wait();
  check_part(where, "disk", {0, std::min(known.disk, rest)});
  check_part(where, "cpu", {known.cpu, rest});
  check_part(where, "runqueue", {0, rest - known.cpu});
  double sum = 0;
  for (const char* name : kParts) {
    sum += part(where, name);
  }
  CHECK(sum == Approx(where.sum("tacho_request_duration_seconds")).epsilon(1e-6));
}

}  // namespace

TEST_CASE("the parts of a request are those that its thread measured") {
  for (const Place::Kind kind : {Place::Kind::tcp, Place::Kind::unix_stream}) {
    CAPTURE(name_of(kind));
    const Watched where;
    const SlowServer slow;
    const Place place(kind);
    const Shared<Known> known;
    Child server = server_at(place, where.directory(), [&](const UniqueFd& connection, Line& /*parent*/) {
      Work work(slow);
      (void)work.call();
      for (int i = 0; i < kRequests; ++i) {
        receive_once(connection, kRequest);
        work.run(*known, now_ns());
        send_once(connection, kReply);
      }
    });
    const UniqueFd client = connect_to(server, place);
    ask(client, kRequests, kRequest, kReply);
    (void)server.hear();
    REQUIRE(where.value("tacho_requests_total") == kRequests);
    CHECK(served(where, "same_thread") == kRequests);
    CHECK(served(where, "unknown") == 0);
    check_parts(where, *known);
    // The call before the requests is none of theirs.
    const Labels peer{{"peer", "127.0.0.1:" + std::to_string(slow.port())}};
    CHECK(where.value("tacho_dependency_calls_total", peer) == kRequests + 1);
    check_value(where.value("tacho_request_dependency_seconds_total", peer), known->network);
    close_connection(server);
    finish(server);
  }
}

namespace {

/// What a thread that reads passes on to those that answer.
class Queue {
 public:
  struct Job {
    std::size_t connection = 0;
    Moment read;
    std::int64_t pushed_ns = 0;
  };

  void push(Job job) {
    {
      const std::lock_guard lock(mutex_);
      jobs_.push_back(job);
    }
    more_.notify_one();
  }
  /// Nothing within that time: no job.
  std::optional<Job> pop(std::chrono::nanoseconds patience) {
    std::unique_lock lock(mutex_);
    if (!more_.wait_for(lock, patience, [this] { return !jobs_.empty(); })) {
      return {};
    }
    const Job job = jobs_.front();
    jobs_.pop_front();
    return job;
  }

 private:
  std::mutex mutex_;
  std::condition_variable more_;
  std::deque<Job> jobs_;
};

std::vector<UniqueFd> accept_all(const UniqueFd& listener, std::size_t connections) {
  std::vector<UniqueFd> all;
  for (std::size_t i = 0; i < connections; ++i) {
    all.push_back(accept_from(listener));
  }
  return all;
}

/// When the clients asked last, at the earliest; by connection.
using Asked = std::array<std::atomic<std::int64_t>, 3>;

/// Child that reads from its connections in turn, and has one thread that answers. That one looks after something else
/// whenever nothing came for `patience`, and counts how often in `aside`.
Child reader_with_worker(const Watched& where, const SlowServer& slow, std::size_t connections, int rounds,
                         std::chrono::nanoseconds patience, const Shared<Known>& known, const Shared<Asked>& asked_ns,
                         const Shared<std::atomic<int>>& aside) {
  return Child(where.directory(), [&, connections, rounds, patience](Line& parent) {
    const UniqueFd listener = listen_tcp();
    parent.tell(port_of(listener));
    const auto accepted = accept_all(listener, connections);
    const int requests = static_cast<int>(connections) * rounds;
    Queue queue;
    std::thread worker([&] {
      Work work(slow);
      Moment replied;
      for (int i = 0; i < requests;) {
        const auto job = queue.pop(patience);
        if (!job) {
          spin(0.0002);
          ++*aside;
          continue;
        }
        const Moment start = job->read.latest < replied.earliest ? replied : Moment{job->pushed_ns, now_ns()};
        known->handover += between(job->read, start);
        work.run(*known, start.earliest);
        replied = timed([&] { send_once(accepted.at(job->connection), kReply); });
        ++i;
      }
    });
    become_known();
    for (int i = 0; i < rounds; ++i) {
      for (std::size_t c = 0; c < connections; ++c) {
        Moment read = timed([&] { receive_once(accepted.at(c), kRequest); });
        read.earliest = std::max(read.earliest, asked_ns->at(c).load());
        queue.push({.connection = c, .read = read, .pushed_ns = now_ns()});
      }
    }
    worker.join();
    parent.tell();
    (void)parent.hear();
  });
}

}  // namespace

TEST_CASE("until a thread of a pool begins with it, a request is handed over") {
  const Watched where;
  const SlowServer slow;
  const Shared<Known> known;
  const Shared<Asked> asked_ns;
  const Shared<std::atomic<int>> aside;
  constexpr int kRounds = 4;
  constexpr std::size_t kConnections = 3;
  Child server = reader_with_worker(where, slow, kConnections, kRounds, 10s, known, asked_ns, aside);
  const auto port = static_cast<std::uint16_t>(server.hear());
  std::vector<UniqueFd> clients;
  for (std::size_t i = 0; i < kConnections; ++i) {
    clients.push_back(connect_tcp(port));
  }
  for (int i = 0; i < kRounds; ++i) {
    for (std::size_t c = 0; c < kConnections; ++c) {
      asked_ns->at(c) = now_ns();
      send_once(clients.at(c), kRequest);
    }
    for (const UniqueFd& client : clients) {
      receive_once(client, kReply);
    }
  }
  (void)server.hear();
  REQUIRE(where.value("tacho_requests_total") == kRounds * kConnections);
  CHECK(served(where, "handed_over") == kRounds * kConnections);
  CHECK(known->handover.least > 0.1);
  CHECK(where.sum("tacho_request_handover_seconds") == Approx(part(where, "handover")).epsilon(1e-9));
  check_parts(where, *known);
  server.tell();
  server.finish();
}

TEST_CASE("what a worker did beside requests belongs to none of them") {
  const Watched where;
  const SlowServer slow;
  const Shared<Known> known;
  const Shared<Asked> asked_ns;
  const Shared<std::atomic<int>> aside;
  Child server = reader_with_worker(where, slow, 1, kRequests, 5ms, known, asked_ns, aside);
  const UniqueFd client = connect_tcp(static_cast<std::uint16_t>(server.hear()));
  for (int i = 0; i < kRequests; ++i) {
    // It has turned aside twice, and waits again.
    for (const int before = *aside; *aside < before + 2;) {
      nap(500us);
    }
    nap(1ms);
    asked_ns->at(0) = now_ns();
    send_once(client, kRequest);
    receive_once(client, kReply);
  }
  (void)server.hear();
  CHECK(served(where, "handed_over") == kRequests);
  check_parts(where, *known);
  server.tell();
  server.finish();
}

// Each request is answered when a timer fires; one of the two connections asks in the midst of the other's.
TEST_CASE("requests that one thread has open at a time are told apart") {
  const Watched where;
  Child server(where.directory(), [](Line& parent) {
    const UniqueFd listener = listen_tcp();
    parent.tell(port_of(listener));
    const auto connections = accept_all(listener, 2);
    become_known();
    for (int i = 0; i < kRequests; ++i) {
      receive_once(connections[0], kRequest);
      parent.tell();
      receive_once(connections[1], kRequest);
      nap(1ms);
      send_once(connections[0], kReply);
      send_once(connections[1], kReply);
    }
    for (int i = 0; i < kRequests; ++i) {  // one after the other
      receive_once(connections[0], kRequest);
      nap(1ms);
      send_once(connections[0], kReply);
    }
    parent.tell();
    (void)parent.hear();
  });
  const auto port = static_cast<std::uint16_t>(server.hear());
  const UniqueFd first = connect_tcp(port);
  const UniqueFd second = connect_tcp(port);
  for (int i = 0; i < kRequests; ++i) {
    send_once(first, kRequest);
    (void)server.hear();
    send_once(second, kRequest);
    receive_once(first, kReply);
    receive_once(second, kReply);
  }
  ask(first, kRequests, kRequest, kReply);
  (void)server.hear();
  CHECK(served(where, "interleaved") == 2 * kRequests);
  CHECK(served(where, "same_thread") == kRequests);
  server.tell();
  server.finish();
}

TEST_CASE("of datagrams nothing is told but that they were served") {
  const Watched where;
  Child server(where.directory(), [](Line& parent) {
    const UniqueFd socket = bound_socket(20'000);
    parent.tell(port_of(socket));
    for (int i = 0; i < kRequests; ++i) {
      send_to(socket, ntohs(spin_for(socket).sin_port));
    }
    parent.tell();
    (void)parent.hear();
  });
  const auto port = static_cast<std::uint16_t>(server.hear());
  const UniqueFd client = bound_socket(0);
  for (int i = 0; i < kRequests; ++i) {
    send_to(client, port);
    (void)spin_for(client);
  }
  (void)server.hear();
  CHECK(where.value("tacho_requests_total") == kRequests);
  CHECK(served(where, "unknown") == kRequests);
  for (const char* name : kParts) {
    CHECK(part(where, name) == 0);
  }
  server.tell();
  server.finish();
}

TEST_CASE("slow requests are those above the threshold, and their parts are told apart") {
  const Cgroup cgroup(playground() + "/" + unique_name());
  auto config = watching(cgroup.path());
  config.probes.anatomy.slow = 5ms;
  Running tacho(config);
  const Labels target{{"target", "t"}};
  REQUIRE(tacho.wait_for([&] { return tacho.watches(target); }));
  // Once a second it is told what is slow.
  REQUIRE(tacho.wait_for(
      [&, from = std::chrono::steady_clock::now()] { return std::chrono::steady_clock::now() - from > 1100ms; }));
  Child server = server_that(cgroup.directory(), [](const UniqueFd& connection, Line& /*parent*/) {
    become_known();
    for (int i = 0; i < 2 * kRequests; ++i) {
      receive_once(connection, kRequest);
      (void)nap(i % 2 == 0 ? 100us : 10ms);
      send_once(connection, kReply);
    }
  });
  const UniqueFd client = connect_to(server);
  ask(client, 2 * kRequests, kRequest, kReply);
  (void)server.hear();
  const Page page = tacho.page();
  // A CPU that is taken away makes others slow, too.
  const double slow = page.value("tacho_slow_requests_total", target);
  CHECK(slow >= kRequests);
  CHECK(slow <= 2 * kRequests);
  const auto sleep = [&](const std::string& family) {
    return page.value(family, {{"target", "t"}, {"part", "sleep"}});
  };
  CHECK(sleep("tacho_slow_request_time_seconds_total") >= kRequests * 0.01);
  CHECK(sleep("tacho_slow_request_time_seconds_total") < sleep("tacho_request_time_seconds_total"));
  close_connection(server);
  finish(server);
}

TEST_CASE("the slowest requests are told one by one") {
  constexpr int kMany = 400;  // many more than are kept, and kept back more and more
  constexpr int kEvery = 20;
  const Watched where;
  const SlowServer slow;
  Child server = server_that(where.directory(), [&](const UniqueFd& connection, Line& /*parent*/) {
    must(::prctl(PR_SET_NAME, "a slow one") == 0, "prctl");
    Work work(slow);
    (void)work.call();
    for (int i = 0; i < kMany; ++i) {
      receive_once(connection, kRequest);
      if (i % kEvery == kEvery - 1) {
        (void)work.call();
        (void)nap(std::chrono::milliseconds(2 + i / kEvery));
      }
      send_once(connection, kReply);
    }
  });
  const UniqueFd client = connect_to(server);
  ask(client, kMany, kRequest, kReply);
  (void)server.hear();
  const auto table = shared().app().scraper().table({.filter = where.path()});
  REQUIRE(table.rows.size() == 1);
  const std::vector<std::string> ids{table.rows[0].id};
  const auto view = shared().app().scraper().slowest(ids);
  REQUIRE(view.targets.size() == 1);
  const auto& requests = view.targets[0].requests;
  REQUIRE(requests.size() >= RECORDS_A_STEP);
  // What the machine made slow may be among them; the slowest ones are all there.
  CHECK(requests.front().duration_ns >= 21'000'000);
  std::size_t called = 0;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const auto& request = requests[i];
    CAPTURE(i, request.duration_ns, request.calls);
    CHECK(request.mode == "same_thread");
    CHECK(request.thread_name == "a slow one");
    CHECK(request.bytes == kRequest);
    CHECK(request.client.starts_with("127.0.0.1:"));
    CHECK(std::accumulate(request.parts_ns.begin(), request.parts_ns.end(), std::uint64_t{0}) == request.duration_ns);
    CHECK(request.ended_ns <= view.now_ns);
    CHECK((i == 0 || request.duration_ns <= requests[i - 1].duration_ns));
    if (request.calls > 0) {
      ++called;
      CHECK(request.calls == 1);
      CHECK(request.calls_ns == request.longest_call_ns);
      CHECK(request.calls_ns <= request.duration_ns);
      CHECK(request.longest_call_peer == "127.0.0.1:" + std::to_string(slow.port()));
      CHECK(request.parts_ns[TACHO_PART_SLEEP] >= 2'000'000);
    }
  }
  // Those from 6 ms on, all but the four that are too fast for sixteen.
  CHECK(called >= RECORDS_A_STEP - 2);
  CHECK(where.value("tacho_unrecorded_requests_total") == 0);
  close_connection(server);
  finish(server);
}

TEST_CASE("where threads are not seen, requests count and nothing is said of what they waited for") {
  const Cgroup cgroup(playground() + "/" + unique_name());
  auto config = watching(cgroup.path());
  config.probes.sched.enabled = false;
  Running tacho(config);
  Child server = server_that(cgroup.directory(), [](const UniqueFd& connection, Line& /*parent*/) {
    serve(connection, kRequests, kRequest, kReply);
  });
  const UniqueFd client = connect_to(server);
  ask(client, kRequests, kRequest, kReply);
  (void)server.hear();
  const Page page = tacho.page();
  CHECK(page.value("tacho_requests_total", {{"target", "t"}}) == kRequests);
  CHECK(page.count("tacho_probe_attached", {{"probe", "socket"}, {"hook", "anatomy"}}) == 0);
  CHECK(page.count("tacho_request_time_seconds_total", {{"target", "t"}}) == 0);
  CHECK(page.count("tacho_request_serving_total", {{"target", "t"}}) == 0);
  close_connection(server);
  finish(server);
}
