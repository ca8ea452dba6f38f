// The protocols of caches, and a plain echo.
#include <charconv>
#include <sstream>

#include "support/open_loop/protocol.h"

namespace tacho::support {
namespace {

class Redis final : public Protocol {
 public:
  explicit Redis(std::string command) : command_(std::move(command)) {}

  [[nodiscard]] std::string request(std::uint64_t number) override {
    std::istringstream text(numbered(command_, number));
    std::string words;
    std::string word;
    int count = 0;
    for (; text >> word; ++count) {
      words += "$" + std::to_string(word.size()) + "\r\n" + word + "\r\n";
    }
    return "*" + std::to_string(count) + "\r\n" + words;
  }

  Reply receive(std::string_view bytes) override {
    buffer_ += bytes;
    while (expected_ > 0) {
      const auto line = buffer_.find("\r\n", read_);
      if (line == std::string::npos) {
        return Reply::kIncomplete;
      }
      long long size = 0;
      std::from_chars(buffer_.data() + read_ + 1, buffer_.data() + line, size);
      const char type = buffer_[read_];
      auto next = line + 2;
      if (type == '$' && size >= 0) {
        next += static_cast<std::size_t>(size) + 2;
        if (buffer_.size() < next) {
          return Reply::kIncomplete;
        }
      }
      refused_ = refused_ || type == '-';
      expected_ += (type == '*' && size > 0 ? size : 0) - 1;
      read_ = next;
    }
    const bool refused = refused_;
    buffer_.clear();
    read_ = 0;
    expected_ = 1;
    refused_ = false;
    return refused ? Reply::kRefused : Reply::kComplete;
  }

 private:
  std::string command_;
  std::string buffer_;
  std::size_t read_ = 0;
  long long expected_ = 1;
  bool refused_ = false;
};

class Memcached final : public Protocol {
 public:
  explicit Memcached(const std::string& command) : command_(command + "\r\n") {}

  [[nodiscard]] std::string request(std::uint64_t number) override { return numbered(command_, number); }

  Reply receive(std::string_view bytes) override {
    buffer_ += bytes;
    if (buffer_.ends_with("END\r\n") || buffer_.ends_with("ERROR\r\n")) {
      const bool found = buffer_.starts_with("VALUE ");
      buffer_.clear();
      return found ? Reply::kComplete : Reply::kRefused;
    }
    return Reply::kIncomplete;
  }

 private:
  std::string command_;
  std::string buffer_;
};

class Echo final : public Protocol {
 public:
  explicit Echo(std::string message) : message_(std::move(message)) {}

  [[nodiscard]] std::string request(std::uint64_t /*number*/) override { return message_; }

  Reply receive(std::string_view bytes) override {
    received_ += bytes.size();
    if (received_ < message_.size()) {
      return Reply::kIncomplete;
    }
    received_ = 0;
    return Reply::kComplete;
  }

 private:
  std::string message_;
  std::size_t received_ = 0;
};

}  // namespace

std::unique_ptr<Protocol> make_redis(const std::string& command) {
  return std::make_unique<Redis>(command);
}

std::unique_ptr<Protocol> make_memcached(const std::string& command) {
  return std::make_unique<Memcached>(command);
}

std::unique_ptr<Protocol> make_echo(const std::string& message) {
  return std::make_unique<Echo>(message);
}

}  // namespace tacho::support
