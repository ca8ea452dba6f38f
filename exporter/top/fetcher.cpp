#include "top/fetcher.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <utility>

namespace tacho::top {
namespace {

constexpr std::chrono::seconds kInterval{1};

}  // namespace

Fetcher::Fetcher(Client& client, std::string path, UniqueFd news)
    : client_(client), news_(std::move(news)), path_(std::move(path)) {}

Result<std::unique_ptr<Fetcher>> Fetcher::start(Client& client, std::string path) {
  UniqueFd news(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!news) {
    return fail_errno("eventfd");
  }
  std::unique_ptr<Fetcher> fetcher(new Fetcher(client, std::move(path), std::move(news)));
  fetcher->thread_ = std::jthread([self = fetcher.get()](const std::stop_token& stop) { self->run(stop); });
  return fetcher;
}

Fetcher::~Fetcher() {
  thread_.request_stop();
  client_.cancel();
}

void Fetcher::ask(std::string path) {
  const std::lock_guard lock(mutex_);
  path_ = std::move(path);
  ++question_;
  changed_.notify_all();
}

void Fetcher::pause(bool paused) {
  const std::lock_guard lock(mutex_);
  paused_ = paused;
  changed_.notify_all();
}

std::optional<Result<Frame>> Fetcher::take() {
  const std::lock_guard lock(mutex_);
  std::uint64_t count = 0;
  [[maybe_unused]] const auto read = ::read(news_.get(), &count, sizeof(count));
  return std::exchange(answer_, std::nullopt);
}

void Fetcher::run(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (!stop.stop_requested()) {
    const std::uint64_t question = question_;
    const std::string path = path_;
    const auto due = std::chrono::steady_clock::now() + kInterval;
    lock.unlock();
    auto body = client_.get(path);
    auto frame = body ? parse_frame(*body) : Result<Frame>(std::unexpected(body.error()));
    lock.lock();
    if (question == question_) {
      answer_ = std::move(frame);
      const std::uint64_t one = 1;
      [[maybe_unused]] const auto written = ::write(news_.get(), &one, sizeof(one));
      changed_.wait_until(lock, stop, due, [this, question] { return question != question_; });
      changed_.wait(lock, stop, [this, question] { return !paused_ || question != question_; });
    }
  }
}

}  // namespace tacho::top
