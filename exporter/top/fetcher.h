#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "base/result.h"
#include "base/unique_fd.h"
#include "top/client.h"
#include "top/frame.h"

namespace tacho::top {

/// Asks for the table once a second on a thread of its own, so that a slow server does not hold the keys up.
class Fetcher {
 public:
  /// @param path what to ask for first; `client` outlives it
  static Result<std::unique_ptr<Fetcher>> start(Client& client, std::string path);
  Fetcher(const Fetcher&) = delete;
  Fetcher& operator=(const Fetcher&) = delete;
  /// Cancels what is under way.
  ~Fetcher();

  /// Asks for something else, at once; an answer under way to the question before is dropped.
  void ask(std::string path);
  void pause(bool paused);

  /// Becomes readable when there is an answer.
  [[nodiscard]] int descriptor() const { return news_.get(); }
  /// The answer that came since the last call, if one did.
  std::optional<Result<Frame>> take();

 private:
  Fetcher(Client& client, std::string path, UniqueFd news);
  void run(const std::stop_token& stop);

  Client& client_;
  UniqueFd news_;
  std::mutex mutex_;  // of all below
  std::condition_variable_any changed_;
  std::string path_;
  std::uint64_t question_ = 0;  // number of the question
  bool paused_ = false;
  std::optional<Result<Frame>> answer_;
  std::jthread thread_;
};

}  // namespace tacho::top
