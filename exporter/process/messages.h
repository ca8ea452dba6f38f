#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/unique_fd.h"

namespace tacho::process {

/// Messages between the processes of this program, to begin and to end; some carry a descriptor.
struct Message {
  // As wide as the next member: padding in between would pass on old bytes of memory.
  enum class Kind : std::uint32_t {  // NOLINT(performance-enum-size)
    none,                            ///< the other end is closed
    start,                           ///< to a starter, with a lane: end the web process, start another that has it
    end,                             ///< to a starter: end the web process at once, and yourself
    spare,                           ///< to a starter, with a lane: fork another starter that has it
    started,   ///< of a starter: the number is the new process's, the other that of how the one before ended
    lacks,     ///< of a starter, at its beginning: what it could not give up
    lane,      ///< to the web process, with a lane to ask the collector on
    bundle,    ///< to the web process, with sealed memory: the web configuration
    listener,  ///< to the web process, with a socket; the text is its address, the number whether it is a unix socket
    serve,     ///< to the web process: that is all, begin
    serving,   ///< of the web process
    failed,    ///< of the web process: why it does not serve
  };
  static constexpr std::size_t kTextSize = 1024;

  Kind kind = Kind::none;
  std::int32_t number = 0;
  std::int32_t other = 0;
  std::uint32_t size = 0;
  std::array<char, kTextSize> bytes = {};

  Message() = default;
  explicit Message(Kind what, std::string_view text = {}, int value = 0, int second = 0);
  [[nodiscard]] std::string text() const;
};

struct ReceivedMessage {
  Message message;
  UniqueFd descriptor;
};

/// @param flags as of boundary::send_message()
bool send(int lane, const Message& message, int descriptor = -1, int flags = 0);
/// Waits. Invalid bytes are `none`, as the end is.
ReceivedMessage receive(int lane);

}  // namespace tacho::process
