#include "base/log.h"

#include <fcntl.h>
#include <poll.h>
#include <spdlog/fmt/chrono.h>
#include <spdlog/sinks/base_sink.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/service_manager.h"
#include "base/unique_fd.h"
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

std::atomic<std::uint64_t> dropped_lines = 0;

/// write(2) that does not wait, on what standard error may be.
class Output {
 public:
  explicit Output(int descriptor) : descriptor_(descriptor) {
    struct stat status{};
    if (::fstat(descriptor, &status) != 0) {
      return;
    }
    is_socket_ = S_ISSOCK(status.st_mode);
    waits_ = S_ISFIFO(status.st_mode) || S_ISCHR(status.st_mode);
    if (waits_) {
      // O_NONBLOCK on the descriptor itself would hold for all who share it, such as a shell.
      const std::string path = "/proc/self/fd/" + std::to_string(descriptor);
      own_ = UniqueFd(::open(path.c_str(), O_WRONLY | O_APPEND | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
    }
  }

  /// Bytes written; −1 with EAGAIN where there is no room.
  [[nodiscard]] ssize_t write(std::string_view text) const {
    if (is_socket_) {
      return ::send(descriptor_, text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    }
    if (own_) {
      return ::write(own_.get(), text.data(), text.size());
    }
    if (waits_) {  // somebody else's pipe: what poll promises is room for PIPE_BUF bytes
      pollfd room{.fd = descriptor_, .events = POLLOUT, .revents = 0};
      if (::poll(&room, 1, 0) != 1) {
        errno = EAGAIN;
        return -1;
      }
      text = text.substr(0, PIPE_BUF);
    }
    return ::write(descriptor_, text.data(), text.size());
  }

 private:
  int descriptor_;
  bool is_socket_ = false;
  bool waits_ = false;  // where nobody reads
  UniqueFd own_;
};

class DescriptorSink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  explicit DescriptorSink(int descriptor) : output_(descriptor) {}

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    if (!write_rest()) {
      drop();
      return;
    }
    if (unread_ > 0) {
      rest_ = format(fmt::format("{} lines of the log were dropped: nobody read it", unread_));
      const bool whole = write_rest();
      if (whole || rest_written_ > 0) {
        unread_ = 0;
      } else {
        rest_.clear();
      }
      if (!whole) {
        drop();
        return;
      }
    }
    rest_ = format(message);
    if (!write_rest() && rest_written_ == 0) {
      rest_.clear();
      drop();
    }
  }
  void flush_() override {}

 private:
  void drop() {
    ++unread_;
    ++dropped_lines;
  }
  std::string format(const spdlog::details::log_msg& message) {
    spdlog::memory_buf_t text;
    formatter_->format(message, text);
    return {text.data(), text.size()};
  }
  std::string format(const std::string& text) {
    return format(spdlog::details::log_msg("tacho", spdlog::level::warn, text));
  }
  /// Whether nothing is left of a line that found too little room. What cannot be written at all is given up.
  bool write_rest() {
    rest_written_ = 0;
    while (!rest_.empty()) {
      const ssize_t count = output_.write(rest_);
      if (count < 0 && errno == EINTR) {
        continue;
      }
      if (count < 0 && errno == EAGAIN) {
        return false;
      }
      if (count < 0) {
        ++dropped_lines;
        rest_.clear();
        return true;
      }
      rest_written_ += static_cast<std::size_t>(count);
      rest_.erase(0, static_cast<std::size_t>(count));
    }
    return true;
  }

  const Output output_;
  std::string rest_;
  std::size_t rest_written_ = 0;
  std::uint64_t unread_ = 0;
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

spdlog::sink_ptr make_descriptor_sink(int descriptor) {
  return std::make_shared<DescriptorSink>(descriptor);
}

std::uint64_t dropped_log_lines() {
  return dropped_lines;
}

void init_log(LogLevel level, LogFormat format, spdlog::sink_ptr sink) {
  const char* const journal = std::getenv("JOURNAL_STREAM");
  const bool priority = !sink && journal != nullptr && is_journal(STDERR_FILENO, journal);
  if (!sink) {
    sink = make_descriptor_sink(STDERR_FILENO);
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
