#pragma once

#include <spdlog/spdlog.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

namespace tacho {

enum class LogLevel : std::uint8_t { debug, info, warn, error };
enum class LogFormat : std::uint8_t { text, json };

/// One line a message, whatever bytes it holds. Text: `2026-11-20T23:26:29.123Z WARN message`; JSON (RFC 8259):
/// `{"time":"2026-11-20T23:26:29.123Z","level":"warn","msg":"message"}`. Times are UTC.
/// @param priority each line begins with its priority as the journal reads it, "<4>" for a warning
std::unique_ptr<spdlog::formatter> make_log_formatter(LogFormat format, bool priority = false);

/// Makes `sink` (none: stderr, unbuffered, with priorities where the journal reads it) the place where spdlog's free
/// functions write. Call before other threads log.
void init_log(LogLevel level, LogFormat format, spdlog::sink_ptr sink = nullptr);

/// Writes to a descriptor, which must stay open, and never waits for its reader. Lines for which there is no room are
/// dropped and counted; the next line that finds room reports their number.
spdlog::sink_ptr make_descriptor_sink(int descriptor);

/// Lines dropped since the start.
std::uint64_t dropped_log_lines();

/// Keeps a message that repeats from flooding the log: each key is logged at once, then at most once per interval, with
/// the number of repeats kept back since ("… (repeated 37 times)"). Safe to share between threads.
class RateLimited {
 public:
  using Clock = std::chrono::steady_clock;

  /// At most `max_keys` keys are remembered; beyond that the one logged longest ago is forgotten.
  explicit RateLimited(Clock::duration interval, std::function<Clock::time_point()> now = Clock::now,
                       std::size_t max_keys = 1024);

  /// The text to log now; nothing while the key is suppressed.
  std::optional<std::string> admit(std::string_view key, std::string_view message);

  /// Logs through spdlog what `admit` lets through.
  void log(LogLevel level, std::string_view key, std::string_view message);

 private:
  struct Entry {
    Clock::time_point logged;
    std::uint64_t suppressed = 0;
  };

  Clock::duration interval_;
  std::function<Clock::time_point()> now_;
  std::size_t max_keys_;
  std::mutex mutex_;
  std::map<std::string, Entry, std::less<>> entries_;
};

}  // namespace tacho
