#pragma once

#include <sys/epoll.h>
#include <sys/select.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "kernel/support/child.h"
#include "kernel/support/page.h"
#include "kernel/support/running.h"

namespace tacho::kernel_test {

/// What a polling call looks at: a pipe that is readable or not, and an epoll instance with it.
class Watchable {
 public:
  explicit Watchable(bool readable);
  [[nodiscard]] int pipe() const { return out_.get(); }
  [[nodiscard]] int epoll() const { return epoll_.get(); }
  void make_readable() const;

 private:
  UniqueFd out_;
  UniqueFd in_;
  UniqueFd epoll_;
};

/// A system call that waits for a Watchable.
struct PollCall {
  std::string name;
  /// @param timeout_ms below 0: for ever
  /// @return what the call returned, −errno if it failed
  std::function<int(const Watchable&, int timeout_ms)> wait;
  /// The same call on something that is no descriptor.
  std::function<int()> fail;
};

/// epoll_wait, epoll_pwait, epoll_pwait2, poll, ppoll, select, pselect6: those that this architecture and kernel have,
/// called without the C library, which replaces some by others.
const std::vector<PollCall>& poll_calls();

/// Whether the scheduler observes polls: only those that sleep are counted, as `blocked`.
bool only_sleeps(const Page& page);

/// Waits until the child's threads have stopped running: where the scheduler observes polls, their last waits count
/// from then on.
void await_rest(Running& tacho, const Child& child, std::size_t threads = 1);

/// Completed calls of all outcomes. @param suffix "_count", or "_sum": their duration in seconds
double completed_polls(const Page& page, const Labels& target, const std::string& suffix = "_count");

}  // namespace tacho::kernel_test
