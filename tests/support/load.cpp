#include "support/load.h"

#include <algorithm>
#include <cerrno>
#include <thread>

namespace tacho::support {

using Clock = std::chrono::steady_clock;

namespace {

bool send_all(int socket, const std::string& bytes) {
  std::size_t sent = 0;
  while (sent < bytes.size()) {
    const ssize_t done = send(socket, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    if (done < 0 && errno != EINTR) {
      return false;
    }
    sent += done < 0 ? 0 : static_cast<std::size_t>(done);
  }
  return true;
}

bool receive_all(int socket, std::string& bytes) {
  std::size_t received = 0;
  while (received < bytes.size()) {
    const ssize_t got = recv(socket, bytes.data() + received, bytes.size() - received, 0);
    if (got == 0 || (got < 0 && errno != EINTR)) {
      return false;
    }
    received += got < 0 ? 0 : static_cast<std::size_t>(got);
  }
  return true;
}

}  // namespace

Result<void> Load::open() {
  for (auto& socket : sockets_) {
    auto connected = connect_to(plan_.address);
    if (!connected) {
      return std::unexpected(connected.error());
    }
    socket = std::move(*connected);
    ++opened_;
  }
  return {};
}

bool Load::connect_one(UniqueFd& socket, Outcome& outcome) const {
  if (socket) {
    return true;
  }
  auto connected = connect_to(plan_.address);
  if (!connected) {
    return false;
  }
  socket = std::move(*connected);
  outcome.connections += 1;
  return true;
}

void Load::end_connection(UniqueFd& socket) const {
  if (plan_.resets) {
    const linger at_once{.l_onoff = 1, .l_linger = 0};
    ::setsockopt(socket.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
  }
  socket.reset();
}

Outcome Load::run_one(UniqueFd& socket, Batch& batch) const {
  Outcome outcome;
  const std::string request(plan_.request_bytes, 'q');
  std::string reply(plan_.reply_bytes, '\0');
  std::uint64_t on_this_connection = 0;
  while (!*batch.stop) {
    const std::uint64_t ticket = batch.tickets.fetch_add(1);
    if (batch.requests && ticket >= *batch.requests) {
      break;
    }
    if (plan_.rate > 0) {
      const std::chrono::duration<double> due(static_cast<double>(ticket) / plan_.rate);
      std::this_thread::sleep_until(batch.start + std::chrono::duration_cast<Clock::duration>(due));
    }
    const bool connected = connect_one(socket, outcome);
    const auto sent = Clock::now();
    if (!connected || !send_all(socket.get(), request) || !receive_all(socket.get(), reply)) {
      outcome.failed += 1;
      break;
    }
    outcome.latencies.push_back(Clock::now() - sent);
    outcome.answered += 1;
    if (++on_this_connection == plan_.requests_per_connection) {
      end_connection(socket);
      on_this_connection = 0;
    }
  }
  if (!plan_.keep_open) {
    // At once, not with the last one: a server that takes one connection after the other waits for it.
    socket.reset();
  }
  return outcome;
}

Outcome Load::run(std::optional<std::uint64_t> requests, const std::atomic<bool>& stop) {
  Batch batch{.requests = requests, .stop = &stop, .start = Clock::now(), .tickets = 0};
  std::vector<Outcome> parts(sockets_.size());
  std::vector<std::jthread> threads;
  threads.reserve(sockets_.size());
  for (std::size_t index = 0; index < sockets_.size(); ++index) {
    threads.emplace_back([&, index] { parts[index] = run_one(sockets_[index], batch); });
  }
  for (auto& thread : threads) {
    thread.join();
  }
  Outcome total;
  total.elapsed = Clock::now() - batch.start;
  total.connections = std::exchange(opened_, 0);
  for (const auto& part : parts) {
    total.answered += part.answered;
    total.failed += part.failed;
    total.connections += part.connections;
    total.latencies.insert(total.latencies.end(), part.latencies.begin(), part.latencies.end());
  }
  std::ranges::sort(total.latencies);
  return total;
}

}  // namespace tacho::support
