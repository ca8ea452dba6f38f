#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace tacho {

/// systemd, if it started this process as a service. It is notified over the socket that $NOTIFY_SOCKET names, by the
/// protocol of sd_notify(3). Without that variable nothing is sent. Used by one thread.
class ServiceManager {
 public:
  using Clock = std::chrono::steady_clock;

  /// @param socket a path, or '@' and an abstract name; empty: nothing is sent
  /// @param watchdog_usec value of $WATCHDOG_USEC: the longest tolerated silence, in µs
  ServiceManager(std::string_view socket, std::string_view watchdog_usec);
  /// From the environment's variables.
  static ServiceManager from_environment();

  [[nodiscard]] bool asks() const { return !socket_.empty(); }

  /// The program serves; `status` is what `systemctl status` shows.
  void ready(std::string_view status);
  /// The program reads its configuration; ready() follows.
  void reloading();
  void stopping();
  /// Called by the thread that does the work, as often as it likes.
  void alive(Clock::time_point now);

 private:
  void tell(const std::string& state);

  std::string socket_;
  Clock::duration interval_{};  ///< of the watchdog's messages; 0: there is no watchdog
  Clock::time_point next_{};
  bool complained_ = false;
};

/// Whether output to `descriptor` goes to the journal: then $JOURNAL_STREAM names its device and inode.
bool is_journal(int descriptor, std::string_view journal_stream);

}  // namespace tacho
