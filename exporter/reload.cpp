#include "reload.h"

#include <spdlog/spdlog.h>
#include <sys/eventfd.h>

#include <utility>

namespace tacho {
namespace {

using namespace std::chrono_literals;

constexpr auto kInterval = 1s;  // between two reloads
constexpr auto kPatience = 8s;  // below that of Liveness: who waits here is not stuck himself

}  // namespace

ReloadQueue::ReloadQueue() : event_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {}

ReloadQueue::Outcome ReloadQueue::ask() {
  const auto asked = std::make_shared<std::promise<bool>>();
  auto answer = asked->get_future();
  {
    const std::lock_guard lock(mutex_);
    if (waiting_ || closed_) {
      return Outcome::busy;
    }
    waiting_ = asked;
  }
  want();
  if (answer.wait_for(kPatience) == std::future_status::ready) {
    return answer.get() ? Outcome::done : Outcome::failed;
  }
  const std::lock_guard lock(mutex_);
  if (waiting_ == asked) {
    waiting_.reset();
  }
  return Outcome::timeout;
}

void ReloadQueue::want() {
  {
    const std::lock_guard lock(mutex_);
    wanted_ = true;
  }
  ::eventfd_write(event_.get(), 1);
}

void ReloadQueue::consume() {
  eventfd_t ignored = 0;
  ::eventfd_read(event_.get(), &ignored);
}

ReloadQueue::Clock::time_point ReloadQueue::due() {
  const std::lock_guard lock(mutex_);
  return wanted_ ? next_ : Clock::time_point::max();
}

void ReloadQueue::close() {
  std::shared_ptr<std::promise<bool>> waiting;
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    waiting = std::exchange(waiting_, nullptr);
  }
  if (waiting) {
    waiting->set_value(false);
  }
}

void ReloadQueue::serve(const std::function<Result<void>()>& reload, Clock::time_point now) {
  std::shared_ptr<std::promise<bool>> waiting;
  {
    const std::lock_guard lock(mutex_);
    if (!wanted_ || now < next_) {
      return;
    }
    wanted_ = false;
    next_ = now + kInterval;
    waiting = std::exchange(waiting_, nullptr);
  }
  const auto done = reload();
  if (!done) {
    spdlog::error("{}", done.error().message);
  }
  if (waiting) {
    waiting->set_value(done.has_value());
  }
}

}  // namespace tacho
