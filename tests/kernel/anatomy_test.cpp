// What the time of requests went to, in all modes, is what the server's threads and the kernel's accounts of them say.

#include <algorithm>
#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "kernel/support/child.h"
#include "kernel/support/known_work.h"
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
constexpr unsigned kCpu = 0;  // of who works, and of the hog beside it

/// Asks the second thing when the server tells that it has read the first, and waits for both replies.
void ask_together(Child& server, const UniqueFd& first, const UniqueFd& second) {
  for (int i = 0; i < kRequests; ++i) {
    send_once(first, kRequest);
    (void)server.hear();
    send_once(second, kRequest);
    receive_once(first, kReply);
    receive_once(second, kReply);
  }
}

/// Nothing, or a hog.
std::optional<Hog> beside(bool hog) {
  return hog ? std::optional<Hog>(std::in_place, kCpu) : std::nullopt;
}

}  // namespace

TEST_CASE("the parts of a request are those that its thread measured") {
  constexpr std::array kWhere{std::pair{Place::Kind::tcp, false}, std::pair{Place::Kind::unix_stream, false},
                              std::pair{Place::Kind::tcp, true}};
  for (const auto& [kind, is_hogged] : kWhere) {
    CAPTURE(name_of(kind), is_hogged);
    check_agrees([kind, is_hogged] {
      const Watched where;
      const SlowServer slow;
      const auto hog = beside(is_hogged);
      const Place place(kind);
      const Shared<Known> known;
      Child server = server_at(place, where.directory(), [&](const UniqueFd& connection, Line& /*parent*/) {
        Work work(slow);
        work.call();
        pin_to(kCpu);
        for (int i = 0; i < kRequests; ++i) {
          receive_once(connection, kRequest);
          work.run(*known);
          send_once(connection, kReply);
        }
      });
      const UniqueFd client = connect_to(server, place);
      ask(client, kRequests, kRequest, kReply);
      (void)server.hear();
      REQUIRE(where.value("tacho_requests_total") == kRequests);
      CHECK(served(where, "same_thread") == kRequests);
      CHECK(served(where, "unknown") == 0);
      Wrong wrong;
      compare(wrong, where, *known, kRequests);
      check_sums(where);
      if (is_hogged) {
        CHECK((*known)[TACHO_PART_RUNQUEUE].least > kRequests * 0.001);
      }
      // The call before the requests is none of theirs. Who calls may wait for a CPU when the answer is there.
      const Labels peer{{"peer", "127.0.0.1:" + std::to_string(slow.port())}};
      CHECK(where.value("tacho_dependency_calls_total", peer) == kRequests + 1);
      const double network = (*known)[TACHO_PART_NETWORK].least;
      compare(wrong, "calls", where.value("tacho_request_dependency_seconds_total", peer),
              {network, network + (*known)[TACHO_PART_RUNQUEUE].most}, kRequests);
      close_connection(server);
      finish(server);
      return wrong;
    });
  }
}

// The second one is read within the first one's work, and both are answered at the end of it.
TEST_CASE("the parts of requests that one thread has open at a time are all that it did meanwhile") {
  for (const bool is_hogged : {false, true}) {
    CAPTURE(is_hogged);
    check_agrees([is_hogged] {
      const Watched where;
      const SlowServer slow;
      const auto hog = beside(is_hogged);
      const Shared<Known> known;
      Child server(where.directory(), [&](Line& parent) {
        const UniqueFd listener = listen_tcp();
        parent.tell(port_of(listener));
        const UniqueFd first = accept_from(listener);
        const UniqueFd second = accept_from(listener);
        Work work(slow);
        work.call();
        pin_to(kCpu);
        for (int i = 0; i < kRequests; ++i) {
          receive_once(first, kRequest);
          const ThreadClock::Reading began = work.clock().read();
          parent.tell();
          receive_once(second, kRequest);
          const ThreadClock::Reading wait = work.clock().read() - began;
          (*known)[TACHO_PART_NETWORK] += {wait.off_cpu(), wait.off_cpu()};
          (*known)[TACHO_PART_RUNQUEUE] += {wait.runqueue, wait.runqueue};
          (*known)[TACHO_PART_CPU] += {wait.cpu, wait.cpu};
          Known both;
          work.run(both);
          *known += both;
          *known += both;
          send_once(first, kReply);
          send_once(second, kReply);
        }
        parent.tell();
        (void)parent.hear();
      });
      const auto port = static_cast<std::uint16_t>(server.hear());
      const UniqueFd first = connect_tcp(port);
      const UniqueFd second = connect_tcp(port);
      ask_together(server, first, second);
      (void)server.hear();
      CHECK(served(where, "interleaved") == 2 * kRequests);
      check_sums(where);
      server.tell();
      server.finish();
      Wrong wrong;
      compare(wrong, where, *known, 2 * kRequests);
      return wrong;
    });
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
      pin_to(kCpu);
      Moment replied;
      for (int i = 0; i < requests;) {
        const auto job = queue.pop(patience);
        if (!job) {
          spin(0.0002);
          ++*aside;
          continue;
        }
        const std::int64_t now = now_ns();
        const Moment start = job->read.latest < replied.earliest ? replied : Moment{job->pushed_ns, now};
        (*known)[TACHO_PART_HANDOVER] += between(job->read, start);
        work.run(*known, static_cast<double>(now - start.earliest) * 1e-9);
        replied = timed([&] { send_once(accepted.at(job->connection), kReply); });
        work.answered(*known, replied.latest);  // the hook of the send runs at its end
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
  const bool is_hogged = GENERATE(false, true);
  CAPTURE(is_hogged);
  check_agrees([is_hogged] {
    const Watched where;
    const SlowServer slow;
    const auto hog = beside(is_hogged);
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
    CHECK((*known)[TACHO_PART_HANDOVER].least > 0.1);
    CHECK(where.sum("tacho_request_handover_seconds") == Approx(part(where, TACHO_PART_HANDOVER)).epsilon(1e-9));
    check_sums(where);
    server.tell();
    server.finish();
    Wrong wrong;
    compare(wrong, where, *known, kRounds * kConnections);
    return wrong;
  });
}

TEST_CASE("what a worker did beside requests belongs to none of them") {
  check_agrees([] {
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
    check_sums(where);
    server.tell();
    server.finish();
    Wrong wrong;
    compare(wrong, where, *known, kRequests);
    return wrong;
  });
}

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
  ask_together(server, first, second);
  ask(first, kRequests, kRequest, kReply);
  (void)server.hear();
  CHECK(served(where, "interleaved") == 2 * kRequests);
  CHECK(served(where, "same_thread") == kRequests);
  server.tell();
  server.finish();
}
