#include "web/workers.h"

#include <pthread.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <utility>

namespace tacho::web {

Result<std::unique_ptr<Workers>> Workers::create(const std::string& name, unsigned threads) {
  std::unique_ptr<Workers> workers(new Workers);
  workers->event_ = UniqueFd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!workers->event_) {
    return fail_errno("web server: eventfd");
  }
  for (unsigned i = 0; i < threads; ++i) {
    workers->threads_.emplace_back([raw = workers.get(), name] {
      ::pthread_setname_np(::pthread_self(), name.c_str());  // another's name is written to /proc, which may be missing
      raw->run();
    });
  }
  return workers;
}

Workers::~Workers() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  news_.notify_all();
  std::ranges::for_each(threads_, &std::thread::join);
}

void Workers::start(Job job) {
  ++running_;
  {
    const std::lock_guard lock(mutex_);
    jobs_.push_back(std::move(job));
  }
  news_.notify_one();
}

void Workers::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    news_.wait(lock, [this] { return stop_ || !jobs_.empty(); });
    if (jobs_.empty()) {
      return;
    }
    const Job job = std::move(jobs_.back());
    jobs_.pop_back();
    lock.unlock();
    Finish finish = job();
    lock.lock();
    finished_.push_back(std::move(finish));
    ::eventfd_write(event_.get(), 1);
  }
}

void Workers::collect() {
  eventfd_t ignored = 0;
  ::eventfd_read(event_.get(), &ignored);
  std::vector<Finish> finished;
  {
    const std::lock_guard lock(mutex_);
    std::swap(finished, finished_);
  }
  for (const Finish& finish : finished) {
    --running_;
    finish();
  }
}

}  // namespace tacho::web
