#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace tacho {

/// systemd, where it started this process as a service: told its state over the socket that $NOTIFY_SOCKET names, by
/// the protocol of sd_notify(3). Elsewhere nothing is told to nobody. Used by one thread.
class ServiceManager {
 public:
  using Clock = std::chrono::steady_clock;

  /// @param socket a path, or '@' and an abstract name; empty: nobody asks
  /// @param watchdog_usec what $WATCHDOG_USEC says: the longest silence that is tolerated
  ServiceManager(std::string_view socket, std::string_view watchdog_usec);
  /// As the environment says.
  static ServiceManager from_environment();

  [[nodiscard]] bool asks() const { return !socket_.empty(); }

  /// It serves; `status` is what `systemctl status` shows.
  void ready(std::string_view status);
  /// It reads its configuration; ready() follows.
  void reloading();
  void stopping();
  /// Called by the thread that does the work, as often as it likes.
  void alive(Clock::time_point now);

 private:
  void tell(const std::string& state);

  std::string socket_;
  Clock::duration interval_{};  ///< of the watchdog's messages; 0: none are asked for
  Clock::time_point next_{};
  bool complained_ = false;
};

/// Whether the journal reads what is written to `descriptor`: $JOURNAL_STREAM names its device and inode then.
bool is_journal(int descriptor, std::string_view journal_stream);

}  // namespace tacho
