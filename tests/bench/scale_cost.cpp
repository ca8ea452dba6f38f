// Whether the cost of an event stays what it is when there are many targets, connections and threads: nanoseconds that
// tacho adds to a send or receive and to a change of the running thread with its wake-up, while one process or a
// thousand work in turns.
//
// usage: scale_cost CGROUP [rounds]
//        scale_cost CGROUP load WORKERS CONNECTIONS SECONDS
//
// CGROUP: an empty directory of the v2 hierarchy to work in. Everything is measured without tacho first and with it
// then, by the same processes on the same connections; the least disturbed round counts. What CPUs pay for the memory
// that they share is measured by two processes that work at once, on two CPUs, in one target and in two. load: makes
// turns and changes of the running thread for that time, in cgroups c0, c1, … that are there, and prints "connected"
// when it begins and how many they were when it ends. All the rest runs on one CPU.

#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "watched.h"

namespace {

using namespace tacho::bench;
using Clock = std::chrono::steady_clock;

constexpr int kTurnsPerRound = 10'000;

struct Shape {
  int targets = 1;
  int workers = 1;      // processes; the same number in each target
  int connections = 1;  // of all targets together
};

/// What goes round among the workers. A pipe passes it whole.
struct Token {
  enum class Kind : std::uint8_t { turns, pass, end };
  Kind kind{};
  std::uint64_t ns = 0;  // what the turns of all workers so far took
};

class Pipe {
 public:
  Pipe() {
    std::array<int, 2> ends{};
    if (::pipe(ends.data()) != 0) {
      die("pipe");
    }
    from_.reset(ends[0]);
    to_.reset(ends[1]);
  }
  [[nodiscard]] bool get(Token& token) const { return ::read(from_.get(), &token, sizeof(token)) == sizeof(token); }
  [[nodiscard]] bool put(const Token& token) const {
    return ::write(to_.get(), &token, sizeof(token)) == sizeof(token);
  }

 private:
  tacho::UniqueFd from_, to_;
};

/// A worker's life: makes its turns whenever the token comes by.
void work(const Pipe& before, const Pipe& after, int connections, int repeats) {
  std::vector<Pair> pairs;
  for (int i = 0; i < connections; ++i) {
    pairs.push_back(connect_pair());
  }
  Token token;
  while (before.get(token)) {
    if (token.kind == Token::Kind::turns) {
      const auto start = Clock::now();
      for (int i = 0; i < repeats; ++i) {
        for (const Pair& pair : pairs) {
          turn(pair);
        }
      }
      token.ns += static_cast<std::uint64_t>((Clock::now() - start).count());
    }
    if (!after.put(token) || token.kind == Token::Kind::end) {
      return;
    }
  }
}

/// Processes that work until they are told to end.
class Workers {
 public:
  void start(const std::function<void()>& live) {
    const pid_t child = ::fork();
    if (child < 0) {
      die("fork");
    }
    if (child == 0) {
      live();
      std::_Exit(0);
    }
    children_.push_back(child);
  }
  void wait() const {
    for (const pid_t child : children_) {
      ::waitpid(child, nullptr, 0);
    }
  }

 private:
  std::vector<pid_t> children_;
};

/// Processes that pass a token to each other, and back.
class Ring {
 public:
  /// Worker i lives in the cgroup of the directory `prefix` followed by i modulo the number of targets.
  Ring(const Shape& shape, const std::string& prefix)
      : count_(shape.workers), pipes_(static_cast<std::size_t>(shape.workers) + 1) {
    const int each = shape.connections / shape.workers;
    const int repeats = kTurnsPerRound / shape.connections;
    turns_ = each * repeats * shape.workers;
    for (std::size_t i = 0; i < static_cast<std::size_t>(count_); ++i) {
      workers_.start([&, i] {
        join_cgroup(prefix + std::to_string(i % static_cast<std::size_t>(shape.targets)));
        work(pipes_[i], pipes_[i + 1], each, repeats);
      });
    }
    round(Token::Kind::turns);
  }
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;
  ~Ring() {
    round(Token::Kind::end);
    workers_.wait();
  }

  /// Nanoseconds of all workers' turns.
  double round(Token::Kind kind) const {
    Token token{.kind = kind};
    if (!pipes_.front().put(token) || !pipes_.back().get(token)) {
      die("the ring is broken");
    }
    return static_cast<double>(token.ns);
  }
  [[nodiscard]] int turns() const { return turns_; }
  [[nodiscard]] int switches() const { return count_ + 1; }

  /// Nanoseconds a send or receive.
  [[nodiscard]] double operation() const { return round(Token::Kind::turns) / turns_ / kOperationsPerTurn; }
  /// Nanoseconds a change of the running thread.
  [[nodiscard]] double change() const {
    const int rounds = 1 + 2'000 / switches();
    const auto start = Clock::now();
    for (int i = 0; i < rounds; ++i) {
      round(Token::Kind::pass);
    }
    const std::chrono::duration<double, std::nano> elapsed = Clock::now() - start;
    return elapsed.count() / rounds / switches();
  }

 private:
  int count_;
  int turns_ = 0;
  std::vector<Pipe> pipes_;
  Workers workers_;
};

/// A process on each of two CPUs, which work at once.
class Both {
 public:
  /// The one on CPU i lives in the cgroup of the directory `prefix` followed by i modulo the number of targets.
  Both(int targets, const std::string& prefix) {
    for (int i = 0; i < kCpus; ++i) {
      workers_.start([&, i] {
        stay_on_one_cpu(static_cast<unsigned>(i));
        join_cgroup(prefix + std::to_string(i % targets));
        work(to_[static_cast<std::size_t>(i)], from_[static_cast<std::size_t>(i)], 1, kTurnsPerRound);
      });
    }
    round(Token::Kind::turns);
  }
  Both(const Both&) = delete;
  Both& operator=(const Both&) = delete;
  ~Both() {
    round(Token::Kind::end);
    workers_.wait();
  }

  /// Nanoseconds a send or receive, of the least disturbed of the rounds.
  double operation(int rounds) const {
    double least = std::numeric_limits<double>::max();
    for (int i = 0; i < rounds; ++i) {
      least = std::min(least, round(Token::Kind::turns) / kCpus / kTurnsPerRound / kOperationsPerTurn);
    }
    return least;
  }

 private:
  double round(Token::Kind kind) const {
    for (const Pipe& pipe : to_) {
      if (!pipe.put(Token{.kind = kind})) {
        die("a process has ended");
      }
    }
    double sum = 0;
    for (const Pipe& pipe : from_) {
      Token token;
      if (!pipe.get(token)) {
        die("a process has ended");
      }
      sum += static_cast<double>(token.ns);
    }
    return sum;
  }

  static constexpr int kCpus = 2;
  std::array<Pipe, kCpus> to_, from_;
  Workers workers_;
};

struct Cost {
  double operation = std::numeric_limits<double>::max();
  double change = std::numeric_limits<double>::max();
};

Cost least(const Ring& ring, int rounds) {
  Cost cost;
  for (int i = 0; i < rounds; ++i) {
    cost.operation = std::min(cost.operation, ring.operation());
    cost.change = std::min(cost.change, ring.change());
  }
  return cost;
}

/// Cgroups c0, c1, … of the directory.
class Groups {
 public:
  Groups(const std::string& base, int count)
      : name_(base.substr(base.rfind('/'))), prefix_(base + "/c"), count_(count) {
    for (int i = 0; i < count_; ++i) {
      ::mkdir((prefix_ + std::to_string(i)).c_str(), 0755);
    }
  }
  Groups(const Groups&) = delete;
  Groups& operator=(const Groups&) = delete;
  ~Groups() {
    for (int i = 0; i < count_; ++i) {
      ::rmdir((prefix_ + std::to_string(i)).c_str());
    }
  }
  [[nodiscard]] const std::string& prefix() const { return prefix_; }
  /// With all default probes, as users have them.
  [[nodiscard]] std::unique_ptr<tacho::App> watch() const {
    return start_tacho(name_ + "/c*", {.socket = true, .poll = true, .sched = true},
                       static_cast<std::uint32_t>(count_) + 1);
  }

 private:
  std::string name_;
  std::string prefix_;
  int count_;
};

void measure_both(const std::string& base, int targets, int rounds) {
  const Groups groups(base, targets);
  const Both both(targets, groups.prefix());
  const double bare = both.operation(rounds);
  const auto app = groups.watch();
  both.operation(1);
  std::printf("two CPUs at once, in %d targets: operation %.1f ns, %.1f more watched\n", targets, bare,
              both.operation(rounds) - bare);
  std::fflush(stdout);
}

void measure(const std::string& base, const Shape& shape, int rounds) {
  const Groups groups(base, shape.targets);
  const Ring ring(shape, groups.prefix());
  const Cost bare = least(ring, rounds);
  const auto app = groups.watch();
  ring.round(Token::Kind::turns);  // connections older than tacho are judged at their first operations
  const Cost watched = least(ring, rounds);
  std::printf(
      "%d connections of %d targets: operation %.1f ns, %.1f more watched; change of thread %.1f ns, %.1f more "
      "watched\n",
      shape.connections, shape.targets, bare.operation, watched.operation - bare.operation, bare.change,
      watched.change - bare.change);
  std::fflush(stdout);
}

void load(const std::string& base, const Shape& shape, std::chrono::seconds time) {
  const Ring ring(shape, base + "/c");
  std::puts("connected");
  std::fflush(stdout);
  const auto start = Clock::now();
  long turns = 0;
  long switches = 0;
  while (Clock::now() < start + time) {
    ring.round(Token::Kind::turns);
    turns += ring.turns();
    switches += ring.switches();
  }
  const std::chrono::duration<double> elapsed = Clock::now() - start;
  std::printf("%.0f operations a second, %.0f changes of thread\n",
              static_cast<double>(turns) * kOperationsPerTurn / elapsed.count(),
              static_cast<double>(switches) / elapsed.count());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr,
                 "usage: scale_cost CGROUP [rounds]\n       scale_cost CGROUP load WORKERS CONNECTIONS SECONDS\n");
    return 2;
  }
  spdlog::set_level(spdlog::level::err);
  stay_on_one_cpu();
  if (argc == 6 && std::string_view(argv[2]) == "load") {
    const int workers = std::atoi(argv[3]);
    load(argv[1], {.targets = workers, .workers = workers, .connections = std::atoi(argv[4])},
         std::chrono::seconds(std::atoi(argv[5])));
    return 0;
  }
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 20;
  for (const int targets : {1, 2}) {
    measure_both(argv[1], targets, rounds);
  }
  // Two processes for 10 000 connections: each has both ends, and a process is often allowed 20 000 descriptors.
  for (const Shape& shape : {Shape{1, 2, 10}, Shape{1, 2, 10'000}, Shape{1'000, 1'000, 10'000}}) {
    measure(argv[1], shape, rounds);
  }
  return 0;
}
