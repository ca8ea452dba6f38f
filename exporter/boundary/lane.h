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

/// Two connected ends that deliver messages whole (SOCK_SEQPACKET), closed on exec.
Result<std::pair<UniqueFd, UniqueFd>> make_lane();

/// Makes senders on this end wait until the other end has read all but a few messages.
Result<void> limit_unread(int lane);

/// Sends a message, with a descriptor if that is one. False: the other end is closed.
/// @param flags MSG_DONTWAIT: false also if there is no room
bool send_message(int lane, std::span<const std::byte> bytes, int descriptor = -1, int flags = 0);

struct Received {
  std::size_t size = 0;  ///< 0: the other end is closed
  UniqueFd descriptor;
};
/// Waits for a message. Longer ones are cut, more descriptors than one are closed.
Received receive_message(int lane, std::span<std::byte> into);

/// The answer to a question.
struct SealedAnswer {
  Status status = Status::failed;
  SealedText text;
};
/// Must not throw.
using AnswerFunction = std::function<SealedAnswer(const Question&)>;

/// Answers the questions that arrive on a lane, one after the other, until the other end is closed.
void serve_lane(int lane, const AnswerFunction& answer);

/// Asks another process over lanes: one question a lane at a time. Pages use the first lane, so that pages and other
/// questions do not delay each other.
class FarCollector final : public Collector {
 public:
  /// @param lanes two at least
  explicit FarCollector(std::vector<UniqueFd> lanes);
  Result<Answer> ask(const Question& question) override;
  /// Whether the other end of a lane is closed: no more questions can be asked on it.
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
