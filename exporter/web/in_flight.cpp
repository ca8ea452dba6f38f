#include "web/in_flight.h"

#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>

namespace tacho::web {

Result<std::unique_ptr<InFlight>> InFlight::create(std::size_t workers) {
  UniqueFd event(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!event) {
    return fail_errno("web server: eventfd");
  }
  return std::unique_ptr<InFlight>(new InFlight(workers, std::move(event)));
}

void InFlight::notify() const {
  ::eventfd_write(event_.get(), 1);
}

bool InFlight::start(int socket, Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  if (busy_ >= workers_) {
    return false;
  }
  ++busy_;
  works_[socket] = {.since = now};
  return true;
}

void InFlight::cancel(int socket) {
  closing(socket);
  closed();
}

void InFlight::handling(int socket) {
  enter(socket, Phase::handling, {});
}

void InFlight::sending(int socket, Clock::time_point now) {
  enter(socket, Phase::sending, now);
}

void InFlight::enter(int socket, Phase phase, Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  const auto found = works_.find(socket);
  if (found == works_.end()) {
    return;
  }
  found->second.phase = phase;
  found->second.since = now;
  if (stopping_ && found->second.waits_for_client()) {
    cut(socket, found->second);
  }
}

void InFlight::closing(int socket) {
  const std::lock_guard lock(mutex_);
  works_.erase(socket);
}

void InFlight::closed() {
  {
    const std::lock_guard lock(mutex_);
    --busy_;
  }
  changed_.notify_all();
  notify();
}

void InFlight::cut(int socket, Work& work) {
  // The number still belongs to this connection: `closing` comes before the close and takes the same lock.
  ::shutdown(socket, SHUT_RDWR);
  work.cut = true;
}

std::size_t InFlight::cut_off(std::size_t wanted, Clock::duration patience, Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  const auto is_cut = [](const auto& entry) { return entry.second.cut; };
  // Free, between closing and closed, or cut off before.
  const std::size_t coming = workers_ - works_.size() + static_cast<std::size_t>(std::ranges::count_if(works_, is_cut));
  std::size_t count = 0;
  for (; coming + count < wanted; ++count) {
    auto slowest = works_.end();
    for (auto each = works_.begin(); each != works_.end(); ++each) {
      if (each->second.waits_for_client() && (slowest == works_.end() || each->second.since < slowest->second.since)) {
        slowest = each;
      }
    }
    if (slowest == works_.end() || now - slowest->second.since < patience) {
      break;
    }
    cut(slowest->first, slowest->second);
  }
  return count;
}

InFlight::Clock::time_point InFlight::next_cut_off(Clock::duration patience, Clock::time_point now) const {
  const std::lock_guard lock(mutex_);
  auto next = Clock::time_point::max();
  for (const auto& [socket, work] : works_) {
    if (!work.cut) {
      next = std::min(next, (work.phase == Phase::handling ? now : work.since) + patience);
    }
  }
  return next;
}

void InFlight::cut_off_all() {
  const std::lock_guard lock(mutex_);
  stopping_ = true;
  for (auto& [socket, work] : works_) {
    if (work.waits_for_client()) {
      cut(socket, work);
    }
  }
}

bool InFlight::wait_until_idle(Clock::duration timeout) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, timeout, [this] { return busy_ == 0; });
}

}  // namespace tacho::web
