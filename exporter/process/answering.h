#pragma once

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <thread>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "boundary/lane.h"

namespace tacho::process {

/// Threads that answer the web process, one per lane. Each web process has lanes of its own: unanswered questions and
/// unread answers of the previous one end with it.
class Answering {
 public:
  Answering() = default;
  Answering(const Answering&) = delete;
  Answering& operator=(const Answering&) = delete;
  ~Answering();

  void start(boundary::AnswerFunction answer);
  /// Leaves the current lanes. @return the other ends of new ones, pages on the first
  Result<std::vector<UniqueFd>> next();

 private:
  static constexpr std::size_t kLanes = 5;  // a page, and four others at a time, as many as handlers ask
  struct Slot {
    UniqueFd lane;  // the thread's, while it answers
    UniqueFd next;
  };

  void run(std::size_t number);

  boundary::AnswerFunction answer_;
  std::mutex mutex_;
  std::condition_variable news_;
  std::vector<Slot> slots_{kLanes};
  bool ended_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace tacho::process
