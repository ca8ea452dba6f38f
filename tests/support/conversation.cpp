#include "support/conversation.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <thread>
#include <utility>

namespace tacho::support {

using Clock = std::chrono::steady_clock;

namespace {

std::uint64_t nanoseconds_since(Clock::time_point start) {
  return static_cast<std::uint64_t>(std::chrono::nanoseconds(Clock::now() - start).count());
}

void pause_for(std::chrono::nanoseconds duration) {
  if (duration.count() > 0) {
    std::this_thread::sleep_for(duration);
  }
}

}  // namespace

Conversation::Conversation(UniqueFd socket, const Behaviour& behaviour, Tally& tally)
    : socket_(std::move(socket)),
      behaviour_(&behaviour),
      tally_(&tally),
      buffer_(behaviour.request_bytes, '\0'),
      reply_(behaviour.reply_bytes, 'r') {
  tally_->connections += 1;
}

bool Conversation::serve_readable() {
  const auto noticed = Clock::now();
  if (received_ == 0) {
    pause_for(behaviour_->read_delay);
  }
  const std::size_t missing = buffer_.size() - received_;
  const std::size_t wanted = behaviour_->read_chunk == 0 ? missing : std::min(missing, behaviour_->read_chunk);
  const ssize_t got = recv(socket_.get(), buffer_.data() + received_, wanted, 0);
  if (got <= 0) {
    return got < 0 && errno == EINTR;
  }
  if (received_ == 0) {
    tally_->queue_ns += nanoseconds_since(noticed);
  }
  const auto read = Clock::now();
  received_ += static_cast<std::size_t>(got);
  tally_->receives += 1;
  tally_->received_bytes += static_cast<std::uint64_t>(got);
  if (received_ < buffer_.size()) {
    return true;
  }
  received_ = 0;
  pause_for(behaviour_->reply_delay);
  tally_->service_ns += nanoseconds_since(read);
  return reply();
}

bool Conversation::reply() {
  const std::size_t part = std::max<std::size_t>(1, reply_.size() / behaviour_->sends);
  std::size_t sent = 0;
  for (std::size_t index = 0; sent < reply_.size(); ++index) {
    const std::size_t length = index + 1 < behaviour_->sends ? part : reply_.size() - sent;
    const ssize_t done = send(socket_.get(), reply_.data() + sent, length, MSG_NOSIGNAL);
    if (done < 0) {
      return false;
    }
    sent += static_cast<std::size_t>(done);
    tally_->sends += 1;
    tally_->sent_bytes += static_cast<std::uint64_t>(done);
  }
  tally_->requests += 1;
  return true;
}

void Conversation::serve_to_the_end() {
  pollfd readable{.fd = socket_.get(), .events = POLLIN, .revents = 0};
  do {
    if (poll(&readable, 1, -1) < 0 && errno != EINTR) {
      return;
    }
  } while (serve_readable());
}

}  // namespace tacho::support
