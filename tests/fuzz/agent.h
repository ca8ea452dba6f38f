#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "fuzz/life.h"
#include "kernel/support/child.h"
#include "kernel/support/span.h"

namespace tacho::fuzz {

/// What an agent does with its sockets, which stand in slots.
enum class Task : std::uint8_t {
  listen,   ///< `how`; answers the port
  connect,  ///< to `number`, a port, or for unix sockets the pid of who listens; answers its own port
  accept,   ///< from slot `number`
  send,     ///< `number`: to this port, of a socket of kind `how`; 0: to whom it is connected
  receive,
  begin_read,  ///< a thread reads; `end_read` waits for it
  end_read,
  await_bytes,  ///< until so many are readable
  await_end,    ///< until the other side has shut down, closed or reset
  shut,
  close,
  reset,
  descriptor,  ///< answers the slot's number in this process
  take,        ///< a socket of process `number`, descriptor `bytes`
};

struct Order {
  Task task = Task::close;
  How how = How::none;
  Content content = Content::text;
  int slot = 0;
  int bytes = 0;
  std::int64_t number = 0;
};

struct Done {
  std::int64_t result = 0;  ///< of the last call; −errno
  kernel_test::Moment when;
};

/// A process in a cgroup that does with sockets what it is told, and says when it did.
class Agent {
 public:
  /// @param cgroup directory
  explicit Agent(const std::string& cgroup);

  Done order(const Order& order) const;
  [[nodiscard]] pid_t pid() const { return child_->pid(); }

 private:
  std::unique_ptr<kernel_test::Child> child_;
};

}  // namespace tacho::fuzz
