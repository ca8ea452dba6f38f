#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "boundary/answer.h"

namespace tacho::boundary {

/// Two ends that pass on messages whole (SOCK_SEQPACKET), closed on exec.
Result<std::pair<UniqueFd, UniqueFd>> make_lane();

/// What is sent from this end waits until the other has read all but a few messages.
Result<void> limit_unread(int lane);

/// Sends a message, with a descriptor if that is one. False: nobody is at the other end.
/// @param flags MSG_DONTWAIT: false also where there is no room
bool send_message(int lane, std::span<const std::byte> bytes, int descriptor = -1, int flags = 0);

struct Received {
  std::size_t size = 0;  ///< 0: nobody is at the other end any more
  UniqueFd descriptor;
};
/// Waits for a message. Longer ones are cut, more descriptors than one are closed.
Received receive_message(int lane, std::span<std::byte> into);

/// What goes back for a question.
struct SealedAnswer {
  Status status = Status::failed;
  SealedText text;
};
/// Must not throw.
using AnswerFunction = std::function<SealedAnswer(const Question&)>;

/// Answers what comes on a lane until nobody is at its other end: one question after the other.
void serve_lane(int lane, const AnswerFunction& answer);

/// Asks on lanes that lead to another process: one question a lane at a time, pages on the first, so that they delay
/// nothing else and nothing delays them.
class FarCollector final : public Collector {
 public:
  /// @param lanes two at least
  explicit FarCollector(std::vector<UniqueFd> lanes);
  Result<Answer> ask(const Question& question) override;
  /// Whether a lane has no other end any more: nothing can be asked on it again.
  [[nodiscard]] bool has_ended() const { return ended_; }

 private:
  class Lease;

  std::vector<UniqueFd> lanes_;
  std::mutex mutex_;
  std::condition_variable freed_;
  std::vector<bool> taken_;
  std::atomic<bool> ended_ = false;
};

}  // namespace tacho::boundary
