#include "support/open_loop/generator.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>

namespace tacho::support {
namespace {

constexpr std::size_t kReceiveBytes = std::size_t{256} * 1024;
constexpr std::size_t kEventsAtOnce = 64;

Clock::duration to_duration(double seconds) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

/// Sleeps to the nanosecond (with the timer slack of the thread) or until there is something to read.
int wait_for_events(int epoll, std::array<epoll_event, kEventsAtOnce>& events, Clock::duration patience) {
  const auto whole = std::chrono::duration_cast<std::chrono::seconds>(patience);
  const timespec time{.tv_sec = whole.count(), .tv_nsec = (patience - whole).count()};
  return epoll_pwait2(epoll, events.data(), kEventsAtOnce, &time, nullptr);
}

struct CpuAccount {
  std::chrono::nanoseconds on_cpu{};
  std::chrono::nanoseconds run_queue{};
};

/// Of this thread (Linux, Documentation/scheduler/sched-stats.rst); zeros where the kernel keeps no account.
CpuAccount cpu_account() {
  std::int64_t on_cpu = 0;
  std::int64_t run_queue = 0;
  std::ifstream("/proc/thread-self/schedstat") >> on_cpu >> run_queue;
  return {.on_cpu = std::chrono::nanoseconds(on_cpu), .run_queue = std::chrono::nanoseconds(run_queue)};
}

}  // namespace

Generator::Generator(Reach reach, MakeProtocol make_protocol)
    : reach_(reach), make_protocol_(std::move(make_protocol)), connections_(reach.connections), loses_(reach.loss) {}

Result<void> Generator::open() {
  epoll_.reset(epoll_create1(EPOLL_CLOEXEC));
  if (!epoll_) {
    return fail_errno("epoll_create1");
  }
  for (std::size_t index = 0; index < connections_.size(); ++index) {
    free_.push_back(index);
    if (!reach_.reconnect) {
      if (auto connected = connect(index); !connected) {
        return connected;
      }
    }
  }
  return {};
}

Result<void> Generator::connect(std::size_t index) {
  auto& connection = connections_[index];
  auto socket = connect_to(reach_.address, reach_.datagrams ? SOCK_DGRAM : SOCK_STREAM);
  if (!socket) {
    return std::unexpected(socket.error());
  }
  // Anew: the last connection may have ended within a reply.
  connection.protocol = make_protocol_();
  if (auto logged_in = connection.protocol->log_in(socket->get()); !logged_in) {
    return logged_in;
  }
  epoll_event interest{.events = EPOLLIN, .data = {.u64 = index}};
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, socket->get(), &interest) != 0) {
    return fail_errno("epoll_ctl");
  }
  connection.socket = std::move(*socket);
  return {};
}

Result<void> Generator::send_request(std::size_t index, Clock::time_point scheduled) {
  auto& connection = connections_[index];
  connection.sent = Clock::now();
  if (!connection.socket) {
    if (auto connected = connect(index); !connected) {
      return connected;
    }
  }
  const auto text = connection.protocol->request(random_() % reach_.numbers);
  connection.busy = true;
  connection.scheduled = scheduled;
  outcome_.sent += 1;
  outstanding_ += 1;
  if (loses_(random_)) {
    outcome_.lost += 1;
    return {};  // its time runs out
  }
  // Requests are small: the socket takes them whole. What it does not take is an error like any other.
  const auto sent = send(connection.socket.get(), text.data(), text.size(), MSG_NOSIGNAL);
  if (sent != static_cast<ssize_t>(text.size())) {
    finish(index, false);
  }
  return {};
}

void Generator::finish(std::size_t index, bool answered) {
  auto& connection = connections_[index];
  const auto now = Clock::now();
  if (answered) {
    const auto bin = static_cast<std::size_t>((now - outcome_.started) / kTimelineBin);
    outcome_.timeline.resize(std::max(outcome_.timeline.size(), bin + 1));
    outcome_.timeline[bin] += 1;
    outcome_.completed += 1;
    outcome_.latencies.push_back(now - connection.scheduled);
    outcome_.round_trips.push_back(now - connection.sent);
  } else {
    outcome_.errors += 1;
  }
  connection.busy = false;
  outstanding_ -= 1;
  free_.push_back(index);
  if (reach_.reconnect || (!answered && !reach_.datagrams)) {
    connection.socket.reset();
  }
}

void Generator::receive(std::size_t index) {
  thread_local std::vector<char> room(kReceiveBytes);
  auto& connection = connections_[index];
  const ssize_t got = recv(connection.socket.get(), room.data(), room.size(), MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
    return;
  }
  if (got <= 0) {
    if (connection.busy) {
      finish(index, false);
    }
    connection.socket.reset();
    return;
  }
  const auto reply = connection.protocol->receive({room.data(), static_cast<std::size_t>(got)});
  if (connection.busy && reply != Reply::kIncomplete && !loses_(random_)) {
    finish(index, reply == Reply::kComplete);
  }
}

void Generator::give_up_on_late(Clock::time_point now) {
  for (std::size_t index = 0; index < connections_.size(); ++index) {
    if (connections_[index].busy && now - connections_[index].sent > reach_.timeout) {
      finish(index, false);
    }
  }
}

/// Takes in what is due, and sends as much as there are free connections.
Result<void> Generator::admit(Clock::time_point now) {
  const auto end = outcome_.started + burst_.duration;
  std::exponential_distribution<double> interval(burst_.rate > 0 ? burst_.rate : 1.0);
  while (burst_.rate > 0 && next_arrival_ <= now && next_arrival_ < end) {
    outcome_.offered += 1;
    waiting_.push_back(next_arrival_);
    next_arrival_ += to_duration(interval(random_));
  }
  if (burst_.rate == 0 && now < end) {
    outcome_.offered += free_.size();
    waiting_.insert(waiting_.end(), free_.size(), now);
  }
  if (now >= end + burst_.duration) {
    outcome_.dropped += waiting_.size();
    waiting_.clear();
  }
  while (!free_.empty() && !waiting_.empty()) {
    const auto index = free_.front();
    const auto scheduled = waiting_.front();
    free_.pop_front();
    waiting_.pop_front();
    if (auto sent = send_request(index, scheduled); !sent) {
      return sent;
    }
  }
  return {};
}

Clock::time_point Generator::next_event(Clock::time_point now) const {
  const auto end = outcome_.started + burst_.duration;
  auto next = now + std::chrono::milliseconds(100);
  if (burst_.rate > 0 && next_arrival_ < end) {
    next = std::min(next, next_arrival_);
  }
  return next;
}

Result<BurstOutcome> Generator::run(const Burst& burst) {
  burst_ = burst;
  outcome_ = {};
  random_.seed(burst.seed);
  const auto account = cpu_account();
  outcome_.started = Clock::now();
  next_arrival_ = outcome_.started;
  std::array<epoll_event, kEventsAtOnce> events{};
  auto checked = outcome_.started;
  while (true) {
    const auto now = Clock::now();
    if (auto admitted = admit(now); !admitted) {
      return std::unexpected(admitted.error());
    }
    const bool over = now >= outcome_.started + burst_.duration;
    if (over && outstanding_ == 0 && waiting_.empty()) {
      break;
    }
    const int count =
        wait_for_events(epoll_.get(), events, std::max(Clock::duration{}, next_event(now) - Clock::now()));
    if (count < 0 && errno != EINTR) {
      return fail_errno("epoll_pwait2");
    }
    for (int index = 0; index < count; ++index) {
      receive(events[static_cast<std::size_t>(index)].data.u64);
    }
    if (now - checked > reach_.timeout / 10) {
      checked = now;
      give_up_on_late(now);
    }
  }
  outcome_.elapsed = Clock::now() - outcome_.started;
  const auto [on_cpu, run_queue] = cpu_account();
  outcome_.on_cpu = on_cpu - account.on_cpu;
  outcome_.run_queue = run_queue - account.run_queue;
  return std::move(outcome_);
}

}  // namespace tacho::support
