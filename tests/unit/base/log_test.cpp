#include "base/log.h"

#include <spdlog/sinks/ostream_sink.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

namespace {

using tacho::LogFormat;
using tacho::LogLevel;

/// Catches what spdlog's free functions write while it lives, and gives the default logger back afterwards.
class Capture {
 public:
  Capture(LogLevel level, LogFormat format) : before_(spdlog::default_logger()) {
    tacho::init_log(level, format, std::make_shared<spdlog::sinks::ostream_sink_mt>(stream_));
  }
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;
  ~Capture() { spdlog::set_default_logger(before_); }

  [[nodiscard]] std::string text() const { return stream_.str(); }

 private:
  std::shared_ptr<spdlog::logger> before_;
  std::ostringstream stream_;
};

std::string formatted(LogFormat format, spdlog::level::level_enum level, const std::string& message,
                      bool priority = false) {
  using namespace std::chrono_literals;
  const spdlog::log_clock::time_point when{1'795'217'189s + 7ms};
  const spdlog::details::log_msg entry(when, {}, "tacho", level, message);
  spdlog::memory_buf_t out;
  tacho::make_log_formatter(format, priority)->format(entry, out);
  return {out.data(), out.size()};
}

}  // namespace

TEST_CASE("a text line has UTC time with milliseconds, level and message") {
  CHECK(formatted(LogFormat::text, spdlog::level::warn, "port=80 is taken") ==
        "2026-11-20T23:26:29.007Z WARN port=80 is taken\n");
  CHECK(formatted(LogFormat::text, spdlog::level::critical, "x") == "2026-11-20T23:26:29.007Z ERROR x\n");
}

TEST_CASE("for the journal a line of either format begins with its priority") {
  CHECK(formatted(LogFormat::text, spdlog::level::err, "x", true) == "<3>2026-11-20T23:26:29.007Z ERROR x\n");
  CHECK(formatted(LogFormat::text, spdlog::level::warn, "x", true) == "<4>2026-11-20T23:26:29.007Z WARN x\n");
  CHECK(formatted(LogFormat::text, spdlog::level::info, "x", true) == "<6>2026-11-20T23:26:29.007Z INFO x\n");
  CHECK(formatted(LogFormat::json, spdlog::level::debug, "x", true) ==
        "<7>{\"time\":\"2026-11-20T23:26:29.007Z\",\"level\":\"debug\",\"msg\":\"x\"}\n");
}

TEST_CASE("a text message stays on its line") {
  CHECK(formatted(LogFormat::text, spdlog::level::info, "a\nb\x1b[1m\xff") ==
        "2026-11-20T23:26:29.007Z INFO a\\nb\\x1b[1m\\xff\n");
}

TEST_CASE("a JSON line has time, level and message") {
  CHECK(formatted(LogFormat::json, spdlog::level::debug, "port=80") ==
        "{\"time\":\"2026-11-20T23:26:29.007Z\",\"level\":\"debug\",\"msg\":\"port=80\"}\n");
}

TEST_CASE("a JSON line is valid whatever the message holds") {
  std::string every_byte;
  for (int byte = 0; byte < 256; ++byte) {
    every_byte += static_cast<char>(byte);
  }
  for (const std::string& message :
       {every_byte, std::string("\"}\n{\""), std::string("\\"), std::string(), std::string(100'000, '"'),
        std::string("\xed\xa0\x80 \xc0\x80 \xf4\x90\x80\x80 \xe2\x82"), std::string("{} {0} %s")}) {
    const std::string line = formatted(LogFormat::json, spdlog::level::info, message);
    CHECK(line.find('\n') == line.size() - 1);
    const auto parsed = nlohmann::json::parse(line);
    CHECK(parsed.at("level") == "info");
    CHECK(parsed.at("msg").is_string());
  }
  CHECK(nlohmann::json::parse(formatted(LogFormat::json, spdlog::level::info, "a\"b\\c\nd\x01é")).at("msg") ==
        "a\"b\\c\nd\x01é");
}

TEST_CASE("messages below the level are left out") {
  const Capture capture(LogLevel::warn, LogFormat::text);
  spdlog::debug("one");
  spdlog::info("two");
  spdlog::warn("three {}", 3);
  spdlog::error("four");
  CHECK(capture.text().find("one") == std::string::npos);
  CHECK(capture.text().find("two") == std::string::npos);
  CHECK(capture.text().find(" WARN three 3\n") != std::string::npos);
  CHECK(capture.text().find(" ERROR four\n") != std::string::npos);
}

TEST_CASE("the log starts again with another format") {
  const Capture text(LogLevel::debug, LogFormat::text);
  const Capture json(LogLevel::debug, LogFormat::json);
  spdlog::debug("hello");
  CHECK(text.text().empty());
  CHECK(nlohmann::json::parse(json.text()).at("msg") == "hello");
}

TEST_CASE("a rate-limited message reaches the log with its level, braces and all") {
  const Capture capture(LogLevel::info, LogFormat::json);
  tacho::RateLimited limited(std::chrono::hours(1));
  limited.log(LogLevel::warn, "key", "lost {} events");
  limited.log(LogLevel::warn, "key", "lost {} events");
  const auto line = nlohmann::json::parse(capture.text());  // throws if there were two
  CHECK(line.at("level") == "warn");
  CHECK(line.at("msg") == "lost {} events");
}
