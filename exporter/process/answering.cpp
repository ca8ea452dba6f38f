#include "process/answering.h"

#include <pthread.h>
#include <sys/socket.h>

#include <algorithm>
#include <utility>

namespace tacho::process {

void Answering::start(boundary::AnswerFunction answer) {
  answer_ = std::move(answer);
  for (std::size_t number = 0; number < kLanes; ++number) {
    threads_.emplace_back([this, number] {
      ::pthread_setname_np(::pthread_self(), number == 0 ? "tacho-page" : "tacho-view");
      run(number);
    });
  }
}

Result<std::vector<UniqueFd>> Answering::next() {
  std::vector<UniqueFd> near;
  std::vector<UniqueFd> far;
  for (std::size_t number = 0; number < kLanes; ++number) {
    auto lane = boundary::make_lane();
    if (!lane) {
      return std::unexpected(lane.error());
    }
    // Who takes no answers gets few: each is memory.
    if (auto limited = boundary::limit_unread(lane->first.get()); !limited) {
      return std::unexpected(limited.error());
    }
    near.push_back(std::move(lane->first));
    far.push_back(std::move(lane->second));
  }
  {
    const std::lock_guard lock(mutex_);
    for (std::size_t number = 0; number < kLanes; ++number) {
      ::shutdown(slots_[number].lane.get(), SHUT_RDWR);
      slots_[number].next = std::move(near[number]);
    }
  }
  news_.notify_all();
  return far;
}

void Answering::run(std::size_t number) {
  Slot& slot = slots_[number];
  std::unique_lock lock(mutex_);
  while (true) {
    news_.wait(lock, [&] { return ended_ || slot.next; });
    if (ended_) {
      return;
    }
    slot.lane = std::move(slot.next);
    lock.unlock();
    // Pages are large: one at a time, also for a web process that does not keep to the first lane.
    boundary::serve_lane(slot.lane.get(), [this, number](const boundary::Question& question) {
      return boundary::is_page(question.kind) == (number == 0) ? answer_(question) : boundary::SealedAnswer{};
    });
    lock.lock();
    slot.lane.reset();
  }
}

Answering::~Answering() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    for (const Slot& slot : slots_) {
      ::shutdown(slot.lane.get(), SHUT_RDWR);
    }
  }
  news_.notify_all();
  std::ranges::for_each(threads_, &std::thread::join);
}

}  // namespace tacho::process
