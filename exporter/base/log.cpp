#include "base/log.h"

#include <spdlog/fmt/chrono.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/service_manager.h"
#include "base/utf8.h"

namespace tacho {
namespace {

std::string_view level_name(spdlog::level::level_enum level) {
  switch (level) {
    case spdlog::level::trace:
    case spdlog::level::debug:
      return "debug";
    case spdlog::level::info:
      return "info";
    case spdlog::level::warn:
      return "warn";
    default:
      return "error";
  }
}

std::string upper(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), [](char c) { return static_cast<char>(c - 'a' + 'A'); });
  return out;
}

std::string timestamp(spdlog::log_clock::time_point when) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(when);
  const auto milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(when - seconds).count();
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z", fmt::gmtime(spdlog::log_clock::to_time_t(seconds)), milliseconds);
}

std::string_view payload(const spdlog::details::log_msg& message) {
  return {message.payload.data(), message.payload.size()};
}

class TextFormatter final : public spdlog::formatter {
 public:
  void format(const spdlog::details::log_msg& message, spdlog::memory_buf_t& out) override {
    fmt::format_to(std::back_inserter(out), "{} {} {}\n", timestamp(message.time), upper(level_name(message.level)),
                   printable(payload(message)));
  }
  [[nodiscard]] std::unique_ptr<spdlog::formatter> clone() const override { return std::make_unique<TextFormatter>(); }
};

class JsonFormatter final : public spdlog::formatter {
 public:
  void format(const spdlog::details::log_msg& message, spdlog::memory_buf_t& out) override {
    using Json = nlohmann::ordered_json;
    const Json line = {
        {"time", timestamp(message.time)}, {"level", level_name(message.level)}, {"msg", payload(message)}};
    // A message may quote bytes of a request or a path: what is not UTF-8 becomes U+FFFD instead of an exception.
    fmt::format_to(std::back_inserter(out), "{}\n", line.dump(-1, ' ', false, Json::error_handler_t::replace));
  }
  [[nodiscard]] std::unique_ptr<spdlog::formatter> clone() const override { return std::make_unique<JsonFormatter>(); }
};

/// sd-daemon(3): what stands in front of a line for the journal, which takes it off.
char priority(spdlog::level::level_enum level) {
  switch (level) {
    case spdlog::level::trace:
    case spdlog::level::debug:
      return '7';
    case spdlog::level::info:
      return '6';
    case spdlog::level::warn:
      return '4';
    default:
      return '3';
  }
}

class PriorityFormatter final : public spdlog::formatter {
 public:
  explicit PriorityFormatter(std::unique_ptr<spdlog::formatter> line) : line_(std::move(line)) {}
  void format(const spdlog::details::log_msg& message, spdlog::memory_buf_t& out) override {
    fmt::format_to(std::back_inserter(out), "<{}>", priority(message.level));
    line_->format(message, out);
  }
  [[nodiscard]] std::unique_ptr<spdlog::formatter> clone() const override {
    return std::make_unique<PriorityFormatter>(line_->clone());
  }

 private:
  std::unique_ptr<spdlog::formatter> line_;
};

spdlog::level::level_enum to_spdlog(LogLevel level) {
  switch (level) {
    case LogLevel::debug:
      return spdlog::level::debug;
    case LogLevel::info:
      return spdlog::level::info;
    case LogLevel::warn:
      return spdlog::level::warn;
    case LogLevel::error:
      return spdlog::level::err;
  }
  std::unreachable();
}

}  // namespace

std::unique_ptr<spdlog::formatter> make_log_formatter(LogFormat format, bool priority) {
  if (priority) {
    return std::make_unique<PriorityFormatter>(make_log_formatter(format));
  }
  if (format == LogFormat::json) {
    return std::make_unique<JsonFormatter>();
  }
  return std::make_unique<TextFormatter>();
}

void init_log(LogLevel level, LogFormat format, spdlog::sink_ptr sink) {
  const char* const journal = std::getenv("JOURNAL_STREAM");
  const bool priority = !sink && journal != nullptr && is_journal(STDERR_FILENO, journal);
  if (!sink) {
    sink = std::make_shared<spdlog::sinks::stderr_sink_mt>();
  }
  auto logger = std::make_shared<spdlog::logger>("tacho", std::move(sink));
  logger->set_formatter(make_log_formatter(format, priority));
  logger->set_level(to_spdlog(level));
  spdlog::set_default_logger(std::move(logger));
}

RateLimited::RateLimited(Clock::duration interval, std::function<Clock::time_point()> now, std::size_t max_keys)
    : interval_(interval), now_(std::move(now)), max_keys_(max_keys) {}

std::optional<std::string> RateLimited::admit(std::string_view key, std::string_view message) {
  const std::scoped_lock lock(mutex_);
  const auto now = now_();
  const auto found = entries_.find(key);
  if (found == entries_.end()) {
    if (entries_.size() >= max_keys_) {
      entries_.erase(std::ranges::min_element(entries_, {}, [](const auto& entry) { return entry.second.logged; }));
    }
    entries_.emplace(key, Entry{.logged = now});
    return std::string(message);
  }
  Entry& entry = found->second;
  if (now - entry.logged < interval_) {
    ++entry.suppressed;
    return std::nullopt;
  }
  const auto repeats = std::exchange(entry.suppressed, 0);
  entry.logged = now;
  if (repeats == 0) {
    return std::string(message);
  }
  return fmt::format("{} (repeated {} time{})", message, repeats, repeats == 1 ? "" : "s");
}

void RateLimited::log(LogLevel level, std::string_view key, std::string_view message) {
  if (const auto text = admit(key, message)) {
    spdlog::log(to_spdlog(level), "{}", *text);
  }
}

}  // namespace tacho
