#include <charconv>

#include "support/open_loop/protocol.h"

namespace tacho::support {
namespace {

constexpr std::string_view kEndOfHead = "\r\n\r\n";
constexpr int kHexadecimal = 16;

class Http final : public Protocol {
 public:
  Http(const std::string& path, const std::string& headers)
      : request_("GET " + path + " HTTP/1.1\r\nHost: localhost\r\n" + headers + "\r\n") {}

  [[nodiscard]] std::string request(std::uint64_t number) override { return numbered(request_, number); }

  Reply receive(std::string_view bytes) override {
    buffer_ += bytes;
    if (!in_body_) {
      const auto end = buffer_.find(kEndOfHead);
      if (end == std::string::npos) {
        return Reply::kIncomplete;
      }
      read_head(std::string_view(buffer_).substr(0, end + 2));
      buffer_.erase(0, end + kEndOfHead.size());
      in_body_ = true;
    }
    const bool whole = chunked_ ? take_chunks() : take(missing_);
    if (!whole) {
      return Reply::kIncomplete;
    }
    buffer_.clear();
    in_body_ = false;
    return accepted_ ? Reply::kComplete : Reply::kRefused;
  }

 private:
  void read_head(std::string_view head) {
    accepted_ = head.starts_with("HTTP/1.1 2") || head.starts_with("HTTP/1.0 2");
    std::string small;
    for (const char letter : head) {
      small += letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
    }
    chunked_ = small.contains("\r\ntransfer-encoding: chunked\r\n");
    missing_ = 0;
    constexpr std::string_view kLength = "\r\ncontent-length:";
    if (const auto found = small.find(kLength); found != std::string::npos) {
      const auto digits = small.find_first_not_of(' ', found + kLength.size());
      std::from_chars(small.data() + digits, small.data() + small.size(), missing_);
    }
  }

  /// Removes up to `count` bytes from the buffer and says whether that was all of them.
  bool take(std::size_t& count) {
    const auto taken = std::min(count, buffer_.size());
    buffer_.erase(0, taken);
    count -= taken;
    return count == 0;
  }

  /// Without trailers, which none of our servers sends.
  bool take_chunks() {
    while (take(missing_)) {
      const auto line = buffer_.find("\r\n");
      if (line == std::string::npos) {
        return false;
      }
      std::size_t size = 0;
      std::from_chars(buffer_.data(), buffer_.data() + line, size, kHexadecimal);
      if (size == 0 && buffer_.size() < line + kEndOfHead.size()) {
        return false;
      }
      buffer_.erase(0, line + 2);
      if (size == 0) {
        return true;
      }
      missing_ = size + 2;
    }
    return false;
  }

  std::string request_;
  std::string buffer_;
  std::size_t missing_ = 0;
  bool in_body_ = false;
  bool chunked_ = false;
  bool accepted_ = false;
};

}  // namespace

std::string numbered(const std::string& text, std::uint64_t number) {
  const auto place = text.find("{}");
  return place == std::string::npos ? text : std::string(text).replace(place, 2, std::to_string(number));
}

std::unique_ptr<Protocol> make_http(const std::string& path, const std::string& headers) {
  return std::make_unique<Http>(path, headers);
}

}  // namespace tacho::support
