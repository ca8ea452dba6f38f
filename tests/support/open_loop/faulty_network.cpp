#include "support/open_loop/faulty_network.h"

#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>

namespace tacho::support {
namespace {

constexpr std::size_t kPieceBytes = std::size_t{64} * 1024;
constexpr std::size_t kEvents = 64;

}  // namespace

Result<void> FaultyNetwork::serve() {
  epoll_.reset(epoll_create1(EPOLL_CLOEXEC));
  watch(listener_.get(), 0);
  while (true) {
    std::array<epoll_event, kEvents> events{};
    const int count = epoll_pwait2(epoll_.get(), events.data(), kEvents, patience(), nullptr);
    if (count < 0 && errno != EINTR) {
      return fail_errno("epoll_pwait2");
    }
    for (int index = 0; index < count; ++index) {
      const auto key = events[static_cast<std::size_t>(index)].data.u64;
      if (key == 0) {
        take_connection();
      } else {
        take_piece(key / 2, key % 2);
      }
    }
    deliver();
  }
}

void FaultyNetwork::watch(int descriptor, std::uint64_t key) {
  epoll_event interest{.events = EPOLLIN, .data = {.u64 = key}};
  (void)epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, descriptor, &interest);
}

const timespec* FaultyNetwork::patience() {
  if (pieces_.empty()) {
    return nullptr;
  }
  const auto left = std::max(Clock::duration{}, pieces_.top().due - Clock::now());
  const auto whole = std::chrono::duration_cast<std::chrono::seconds>(left);
  time_ = {.tv_sec = whole.count(), .tv_nsec = (left - whole).count()};
  return &time_;
}

void FaultyNetwork::take_connection() {
  auto client = accept_from(listener_.get());
  auto server = connect_to(server_);
  if (!client || !server) {
    return;  // the client sees its connection closed
  }
  auto connection = std::make_shared<Connection>();
  connection->client = std::move(*client);
  connection->server = std::move(*server);
  const int ends[] = {connection->client.get(), connection->server.get()};
  connections_.push_back(connection);
  for (std::size_t direction = 0; direction < 2; ++direction) {
    connection->pipes[direction] = {.from = ends[direction], .to = ends[1 - direction], .last_due = {}};
    watch(ends[direction], 2 * connections_.size() + direction);
  }
}

void FaultyNetwork::take_piece(std::size_t place, std::size_t direction) {
  const auto connection = connections_[place - 1];
  auto& pipe = connection->pipes[direction];
  std::vector<char> bytes(kPieceBytes);
  const ssize_t got = recv(pipe.from, bytes.data(), bytes.size(), MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
    return;
  }
  bytes.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  if (bytes.empty()) {
    (void)epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, pipe.from, nullptr);
  }
  const auto due = Clock::now() + faults_.delay + (late_(random_) ? faults_.late : Clock::duration{});
  pipe.last_due = std::max(pipe.last_due, due);
  pieces_.push({pipe.last_due, numbers_++, connection, direction, std::move(bytes)});
}

void FaultyNetwork::deliver() {
  while (!pieces_.empty() && pieces_.top().due <= Clock::now()) {
    const Piece piece = pieces_.top();
    pieces_.pop();
    const int to = piece.connection->pipes[piece.direction].to;
    if (!piece.bytes.empty()) {
      (void)send(to, piece.bytes.data(), piece.bytes.size(),
                 MSG_NOSIGNAL);  // to a peer that is gone: nobody misses it
    } else {
      (void)shutdown(to, SHUT_WR);
      if (--piece.connection->open_directions == 0) {
        piece.connection->client.reset();
        piece.connection->server.reset();
      }
    }
  }
}

}  // namespace tacho::support
