#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"

namespace tacho::web {

/// Threads for jobs that may take time. The result of a job is applied on the thread that collects.
class Workers {
 public:
  using Finish = std::function<void()>;
  using Job = std::function<Finish()>;  ///< must not throw

  /// @param name of the threads, at most 15 bytes
  static Result<std::unique_ptr<Workers>> create(const std::string& name, unsigned threads);
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;
  /// Waits for the jobs that run.
  ~Workers();

  /// Whether a thread has nothing to do.
  [[nodiscard]] bool idle() const { return running_ < threads_.size(); }
  [[nodiscard]] bool busy() const { return running_ > 0; }
  /// Only if idle().
  void start(Job job);
  /// Readable when a job has ended.
  [[nodiscard]] int event_fd() const { return event_.get(); }
  /// Applies the results of the ended jobs. start(), idle(), busy() and this: one thread.
  void collect();

 private:
  Workers() = default;
  void run();

  UniqueFd event_;
  std::mutex mutex_;
  std::condition_variable news_;
  std::vector<Job> jobs_;
  std::vector<Finish> finished_;
  bool stop_ = false;
  std::size_t running_ = 0;  // of the collecting thread
  std::vector<std::thread> threads_;
};

}  // namespace tacho::web
