// The slowest requests of each minute are recorded under as many requests as the machine takes: against what client and
// server have measured themselves.

#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "kernel/support/cgroup.h"
#include "kernel/support/child.h"
#include "kernel/support/running.h"
#include "kernel/support/taken.h"
#include "kernel/support/wire.h"
#include "scrape/views.h"

using tacho::UniqueFd;
using tacho::probes::SlowRequest;
using namespace tacho::kernel_test;
using namespace std::chrono_literals;

namespace {

constexpr std::size_t kThreads = 2;
constexpr std::size_t kConnections = 12;  // of a thread; a stall makes no more requests slow than are kept
constexpr std::size_t kMinutes = 64;      // at most
constexpr std::size_t kBytes = 8;         // of a request
constexpr std::size_t kReply = 5;
constexpr std::size_t kNoted = 32;       // of a minute, by each side; more than are recorded
constexpr std::int64_t kSend = 200'000;  // ns; no send takes longer, unless its thread is kept from a CPU

/// A request that took long, as one side has measured it.
struct Long {
  std::int64_t ns = 0;
  std::int64_t from = 0;  ///< CLOCK_MONOTONIC, between which the first byte of the reply left
  std::int64_t to = 0;
  std::uint16_t port = 0;  ///< the client's
};

/// The longest ones of a minute.
class Longest {
 public:
  void add(const Long& one) {
    auto* const shortest = std::ranges::min_element(all_, {}, &Long::ns);
    if (one.ns > shortest->ns) {
      *shortest = one;
      least_ = std::ranges::min(all_, {}, &Long::ns).ns;
    }
  }
  [[nodiscard]] bool takes(std::int64_t ns) const { return ns > least_; }
  [[nodiscard]] const auto& all() const { return all_; }

 private:
  std::array<Long, kNoted> all_{};
  std::int64_t least_ = 0;
};

struct Connection {
  std::atomic<std::int64_t> sent = 0;     ///< when the client's send had returned; 0: not yet
  std::atomic<std::int64_t> replied = 0;  ///< when the server's had
  std::uint16_t port = 0;
};

struct Side {
  std::array<Longest, kMinutes> minutes{};
};

/// What client and server tell each other and the test.
struct Common {
  std::atomic<bool> stop = false;
  std::array<std::array<Connection, kConnections>, kThreads> connections{};
  std::array<Side, kThreads> server{};
  std::array<Side, kThreads> client{};
  std::array<std::atomic<std::uint64_t>, kThreads> answered{};
};

struct Load {
  std::int64_t minute_ns;
  std::int64_t first;  ///< number of the first minute
  Common* common;

  void note(Side& side, std::int64_t at, const Long& one) const {
    const std::int64_t minute = at / minute_ns - first;
    if (minute >= 0 && minute < static_cast<std::int64_t>(kMinutes)) {
      Longest& longest = side.minutes.at(static_cast<std::size_t>(minute));
      if (longest.takes(one.ns)) {
        longest.add(one);
      }
    }
  }

  /// Answers one connection after the other; now and then it stalls, once a minute.
  void serve(std::size_t thread, const std::vector<UniqueFd>& accepted) const {
    std::mt19937_64 random(thread + 1);
    std::uniform_int_distribution<std::int64_t> when(minute_ns / 10, minute_ns * 8 / 10);
    std::int64_t stall = thread == 0 ? (now_ns() / minute_ns + 1) * minute_ns + when(random) : INT64_MAX;
    std::array<char, kBytes> bytes{};
    for (std::size_t c = 0; !common->stop; c = (c + 1) % kConnections) {
      if (::recv(accepted[c].get(), bytes.data(), bytes.size(), 0) <= 0) {
        return;
      }
      std::int64_t now = now_ns();
      if (now >= stall) {
        const timespec time{.tv_sec = 0, .tv_nsec = 100'000'000 + static_cast<long>(random() % 50'000'000)};
        ::nanosleep(&time, nullptr);
        stall = (stall / minute_ns + 1) * minute_ns + when(random);
        now = now_ns();
      }
      Connection& connection = common->connections.at(thread).at(c);
      const std::int64_t sent = connection.sent;
      if (::send(accepted[c].get(), bytes.data(), kReply, MSG_NOSIGNAL) <= 0) {
        return;
      }
      const std::int64_t replied = now_ns();
      connection.replied = replied;
      if (sent > 0) {
        // It came before its send returned, and was not answered before now.
        note(common->server.at(thread), now, {.ns = now - sent, .from = now, .to = replied, .port = connection.port});
      }
    }
  }

  /// What the client has measured, less what it was itself kept from its CPU: before it sent, or when the reply was
  /// there.
  void note_answer(std::size_t thread, std::size_t c, std::int64_t began, std::int64_t now) const {
    const Connection& connection = common->connections.at(thread).at(c);
    const std::int64_t replied = connection.replied;
    const std::int64_t from = std::max(began, connection.sent - kSend);
    const std::int64_t to = replied > 0 ? std::min(replied, now) : now;
    note(common->client.at(thread), now, {.ns = to - from, .from = from, .to = now, .port = connection.port});
  }

  /// Asks on all connections, then takes all answers. At the end one side is gone before the other, and the other
  /// returns.
  void ask(std::size_t thread, const std::vector<UniqueFd>& sockets) const {
    auto& connections = common->connections.at(thread);
    std::array<std::int64_t, kConnections> began{};
    std::array<char, kBytes> bytes{};
    while (!common->stop) {
      for (std::size_t c = 0; c < kConnections; ++c) {
        connections.at(c).sent = 0;
        connections.at(c).replied = 0;
        began.at(c) = now_ns();
        if (::send(sockets[c].get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) <= 0) {
          return;
        }
        connections.at(c).sent = now_ns();
      }
      for (std::size_t c = 0; c < kConnections; ++c) {
        if (::recv(sockets[c].get(), bytes.data(), bytes.size(), 0) <= 0) {
          return;
        }
        note_answer(thread, c, began.at(c), now_ns());
      }
      common->answered.at(thread) += kConnections;
    }
  }
};

void in_threads(const std::function<void(std::size_t)>& work) {
  std::vector<std::jthread> threads;
  for (std::size_t thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&work, thread] { work(thread); });
  }
}

std::size_t chosen(const char* variable, std::size_t otherwise) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? otherwise : std::stoul(text);
}

/// Records by minute as they were found last, whatever is forgotten later.
using Recorded = std::map<std::int64_t, std::vector<SlowRequest>>;

bool is_recorded(const Recorded& recorded, std::int64_t minute, const Long& one) {
  const std::string client = "127.0.0.1:" + std::to_string(one.port);
  for (const std::int64_t number : {minute, minute + 1}) {
    const auto found = recorded.find(number);
    if (found != recorded.end() && std::ranges::any_of(found->second, [&](const SlowRequest& request) {
          return request.client == client && request.ended_ns >= one.from && request.ended_ns <= one.to &&
                 request.bytes == kBytes && request.reply_bytes == kReply;
        })) {
      return true;
    }
  }
  return false;
}

/// From which duration on it takes one to be among the slowest of a minute.
std::int64_t least_recorded(const Recorded& recorded, std::int64_t minute) {
  const auto found = recorded.find(minute);
  if (found == recorded.end() || found->second.size() < RECORDS_A_STEP) {
    return 0;
  }
  const auto fastest = std::ranges::min_element(found->second, {}, &SlowRequest::duration_ns);
  return static_cast<std::int64_t>(fastest->duration_ns);
}

}  // namespace

// TACHO_RECORDER_TRIALS=20 TACHO_RECORDER_SECONDS=60: twenty minutes that are minutes.
TEST_CASE("the slowest requests of a minute are recorded under load, or counted as not recorded") {
  const auto minute = std::chrono::nanoseconds(chosen("TACHO_RECORDER_SECONDS", 2) * 1s);
  const std::size_t trials = chosen("TACHO_RECORDER_TRIALS", 4);
  REQUIRE(trials <= kMinutes);

  const Cgroup cgroup(playground() + "/" + unique_name());
  auto config = watching(cgroup.path());
  config.probes.anatomy.minute = minute;
  Running tacho(config);
  const Labels target{{"target", "t"}};
  REQUIRE(tacho.wait_for([&] { return tacho.watches(target); }));

  const Taken taken(tacho.app());
  const Shared<Common> common;
  const Load load{.minute_ns = minute.count(), .first = now_ns() / minute.count() + 1, .common = &*common};
  const auto patience =
      static_cast<unsigned>(60 + minute.count() * static_cast<std::int64_t>(trials + 3) / 1'000'000'000);
  Child server(cgroup.directory(), [&](Line& parent) {
    ::alarm(patience);
    std::vector<UniqueFd> listeners;
    for (std::size_t thread = 0; thread < kThreads; ++thread) {
      listeners.push_back(listen_tcp());
      parent.tell(port_of(listeners.back()));
    }
    in_threads([&](std::size_t thread) {
      std::vector<UniqueFd> accepted;
      for (std::size_t c = 0; c < kConnections; ++c) {
        accepted.push_back(accept_from(listeners[thread]));
      }
      load.serve(thread, accepted);
    });
  });
  std::array<std::uint16_t, kThreads> ports{};
  for (std::uint16_t& port : ports) {
    port = static_cast<std::uint16_t>(server.hear());
  }
  Child client({}, [&](Line& /*parent*/) {
    ::alarm(patience);
    // What it measures is the server's time, not how long others keep it from a CPU.
    must(::setpriority(PRIO_PROCESS, 0, -15) == 0, "setpriority");
    in_threads([&](std::size_t thread) {
      std::vector<UniqueFd> sockets;
      for (Connection& connection : common->connections.at(thread)) {
        sockets.push_back(connect_tcp(ports.at(thread)));
        connection.port = port_of(sockets.back());
      }
      load.ask(thread, sockets);
    });
  });

  const std::int64_t started = now_ns();
  Recorded recorded;
  const std::int64_t last = load.first + static_cast<std::int64_t>(trials);
  std::vector<std::string> ids;
  const auto look = [&] {
    if (ids.empty()) {
      ids.push_back(tacho.app().scraper().view(tacho::scrape::table_view, tacho::scrape::TableQuery{}).rows.at(0).id);
    }
    Recorded now;
    const auto view = tacho.app().scraper().view(tacho::scrape::slow_view, ids);
    for (const SlowRequest& request : view.targets.at(0).requests) {
      now[request.ended_ns / minute.count()].push_back(request);
    }
    for (auto& [number, requests] : now) {
      recorded[number] = std::move(requests);
    }
  };
  std::int64_t next = 0;
  REQUIRE(tacho.wait_for(
      [&] {
        // Of a minute that is over, what is kept does not change any more.
        const std::int64_t now = now_ns();
        if (now / minute.count() > next) {
          next = now / minute.count();
          look();
        }
        return now >= last * minute.count() + 300'000'000;
      },
      std::chrono::seconds(patience)));
  look();
  common->stop = true;
  const std::int64_t stopped = now_ns();
  client.finish();
  server.finish();

  const Page page = tacho.page();
  const double unrecorded = page.value("tacho_unrecorded_requests_total", target);
  const double requests = page.value("tacho_requests_total", target);
  std::uint64_t answered = 0;
  for (const auto& each : common->answered) {
    answered += each;
  }
  CHECK(requests >= static_cast<double>(answered));
  CHECK(page.value("tacho_request_serving_total", {{"target", "t"}, {"mode", "unknown"}}) <= 2 * kThreads);
  std::size_t found = 0;
  std::size_t known = 0;
  std::size_t missing = 0;
  for (std::int64_t number = load.first; number < last; ++number) {
    const auto at = static_cast<std::size_t>(number - load.first);
    CAPTURE(at);
    Long slowest;
    for (std::size_t thread = 0; thread < kThreads; ++thread) {
      for (const Long& one : common->client.at(thread).minutes.at(at).all()) {
        slowest = one.ns > slowest.ns ? one : slowest;
      }
      for (const Long& one : common->server.at(thread).minutes.at(at).all()) {
        if (one.ns > least_recorded(recorded, number)) {
          ++known;
          missing += is_recorded(recorded, number, one) ? 0U : 1U;
        }
      }
    }
    CAPTURE(slowest.ns, slowest.port, least_recorded(recorded, number));
    CHECK(slowest.ns > 0);
    const bool is_there = is_recorded(recorded, number, slowest) || is_recorded(recorded, number - 1, slowest);
    found += is_there ? 1U : 0U;
    // Where more than are kept took as long, the client's clock does not tell which of them took longest.
    CHECK((is_there || slowest.ns - 2 * kSend <= least_recorded(recorded, number)));
    CHECK(recorded[number].size() == RECORDS_A_STEP);
  }
  CHECK(known >= trials * RECORDS_A_STEP / 2);
  CHECK(static_cast<double>(missing) <= unrecorded);
  // Every 16 records of a CPU the share of its requests that it writes falls by a seventeenth.
  const double minutes = static_cast<double>(trials) + 2;
  const double at_most = minutes * std::thread::hardware_concurrency() * 16 * 17 * std::log(requests / minutes);
  CHECK(static_cast<double>(taken.records()) <= at_most);
  const double seconds = static_cast<double>(stopped - started) / 1e9;
  WARN(trials << " trials of " << static_cast<double>(minute.count()) / 1e9 << " s, " << requests / seconds
              << " requests/s, " << taken.records() << " records: the client's slowest is recorded in " << found
              << "; of " << known << " that the server knows to be among the slowest " << missing
              << " are missing, counted as unrecorded: " << unrecorded);
}
