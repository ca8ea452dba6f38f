#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/log.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "boundary/lane.h"
#include "process/answering.h"
#include "process/capabilities.h"
#include "process/messages.h"
#include "process/pulse.h"
#include "process/shared_state.h"
#include "process/starter.h"
#include "web/bundle.h"
#include "web/listener.h"

namespace tacho::process {

/// The web process, as the collector manages it. It is forked before there is anything to hide from it, given sockets
/// and the web configuration, answered, started anew when it dies, and ended with this object.
class WebKeeper {
 public:
  struct Options {
    std::vector<std::string> listen_addresses;
    std::string web_config_file;  ///< empty: none
    std::string telemetry_path;
    bool lifecycle = false;
    std::function<std::vector<web::Route>()> more_routes;  ///< for tests of what the web process can do
  };

  /// Listens, checks the web configuration, forks. To be called while this program has only one thread, and before it
  /// has anything that the web process must not have. Errors name the place and the remedy.
  static Result<std::unique_ptr<WebKeeper>> prepare(Options options);
  WebKeeper(const WebKeeper&) = delete;
  WebKeeper& operator=(const WebKeeper&) = delete;
  /// Frees the ports, lets answers go out for half a second, ends the processes.
  ~WebKeeper();

  [[nodiscard]] SharedState& shared() { return *shared_; }
  /// Starts the threads that answer, and waits until the web process serves. Earlier connections wait in line.
  /// @param lost called, on one of these threads, when no web process can be started any more
  Result<void> serve(boundary::AnswerFunction answer, std::function<void()> lost);

  /// The addresses that are listened on, in the order of the options, with the ports the kernel chose.
  [[nodiscard]] std::vector<std::string> addresses() const;
  /// Whether clients must speak HTTPS.
  [[nodiscard]] bool tls() const { return source_ && source_->tls(); }
  /// Web processes so far.
  [[nodiscard]] std::uint64_t starts() const { return starts_; }
  /// The rights of the web process that serves now; nothing while there is none.
  [[nodiscard]] std::optional<Rights> web_rights() const;

 private:
  using Clock = std::chrono::steady_clock;

  WebKeeper() = default;
  Result<void> fork_starters(Options options);
  void run();
  void start_web();
  void start_later();
  void replace_starter();
  void replace_spare();
  void fork_spare();
  void take_from_starter(const Message& message);
  void take_from_web();
  void web_is_gone();
  void set_web_pid(int pid);
  void send_bundle();
  void settle(std::optional<Error> error);
  void end_web();

  SharedState* shared_ = nullptr;
  std::optional<web::BundleSource> source_;
  std::vector<web::Listener> listeners_;
  UniqueFd stop_;

  // The keeper's thread's, while it runs.
  Starter active_;
  Starter spare_;  // takes over if the other one dies
  Clock::time_point spare_forked_;
  UniqueFd web_;  // lane to the web process
  bool bundle_is_due_ = false;
  Pulse pulse_;
  RateLimited told_{std::chrono::seconds(10)};
  Clock::time_point started_;
  std::optional<Clock::time_point> start_at_;
  std::chrono::milliseconds pause_{};  ///< that the last start waited for

  std::atomic<std::uint64_t> starts_ = 0;

  mutable std::mutex mutex_;
  std::condition_variable settled_;
  bool is_settled_ = false;
  std::optional<Error> error_;
  int web_pid_ = 0;
  mutable RightsReader web_rights_{"web"};
  std::vector<std::string> lacks_;

  std::function<void()> lost_;
  std::unique_ptr<Answering> answering_;
  std::thread thread_;
};

}  // namespace tacho::process
