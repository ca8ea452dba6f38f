// The protocols of databases and of DNS.
#include <sys/socket.h>

#include <array>
#include <cstring>

#include "support/open_loop/protocol.h"

namespace tacho::support {
namespace {

constexpr int kByte = 8;
constexpr unsigned kByteMask = 0xff;

std::uint32_t big_endian(std::string_view bytes) {
  std::uint32_t value = 0;
  for (const char byte : bytes) {
    value = value << kByte | static_cast<unsigned char>(byte);
  }
  return value;
}

std::string big_endian(std::uint32_t value, int bytes) {
  std::string text;
  for (int index = bytes - 1; index >= 0; --index) {
    text += static_cast<char>(value >> (kByte * index) & kByteMask);
  }
  return text;
}

Result<void> send_text(int socket, const std::string& text) {
  if (send(socket, text.data(), text.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(text.size())) {
    return fail_errno("send");
  }
  return {};
}

/// Receives until the protocol has what it waits for.
Result<void> await_reply(int socket, Protocol& protocol) {
  std::array<char, 4096> room{};
  while (true) {
    const ssize_t got = recv(socket, room.data(), room.size(), 0);
    if (got <= 0) {
      return got == 0 ? fail("the server closed the connection during the log-in") : fail_errno("recv");
    }
    switch (protocol.receive({room.data(), static_cast<std::size_t>(got)})) {
      case Reply::kIncomplete:
        break;
      case Reply::kComplete:
        return {};
      case Reply::kRefused:
        return fail("the server refused the log-in");
    }
  }
}

/// Messages are a type, a length that counts itself, and content; Z (ready for query) ends every reply.
class Postgres final : public Protocol {
 public:
  explicit Postgres(std::string query) : query_(std::move(query)) {}

  Result<void> log_in(int socket) override {
    constexpr std::uint32_t kVersion = 3U << 16U;
    constexpr std::string_view kParameters("user\0postgres\0database\0postgres\0\0", 33);
    const auto body = big_endian(kVersion, 4) + std::string(kParameters);
    auto sent = send_text(socket, big_endian(static_cast<std::uint32_t>(body.size() + 4), 4) + body);
    return sent ? await_reply(socket, *this) : sent;
  }

  [[nodiscard]] std::string request(std::uint64_t number) override {
    const auto query = numbered(query_, number);
    return "Q" + big_endian(static_cast<std::uint32_t>(query.size() + 5), 4) + query + '\0';
  }

  Reply receive(std::string_view bytes) override {
    constexpr std::size_t kHead = 5;
    buffer_ += bytes;
    while (buffer_.size() >= kHead) {
      const auto whole = 1 + big_endian(std::string_view(buffer_).substr(1, 4));
      if (buffer_.size() < whole) {
        break;
      }
      const char type = buffer_.front();
      buffer_.erase(0, whole);
      refused_ = refused_ || type == 'E';
      if (type == 'Z') {
        return std::exchange(refused_, false) ? Reply::kRefused : Reply::kComplete;
      }
    }
    return Reply::kIncomplete;
  }

 private:
  std::string query_;
  std::string buffer_;
  bool refused_ = false;
};

/// Packets are a length of three bytes, a number, and content. A result set is a number of columns, their descriptions,
/// EOF, rows, EOF; anything else is one packet.
class Mysql final : public Protocol {
 public:
  explicit Mysql(std::string query) : query_(std::move(query)) {}

  Result<void> log_in(int socket) override {
    constexpr std::uint32_t kProtocol41SecureConnection = 0x00008200;
    constexpr std::size_t kReserved = 23;
    if (auto greeted = await_reply(socket, *this); !greeted) {
      return greeted;
    }
    std::string body = little_endian(kProtocol41SecureConnection, 4) + little_endian(1U << 24U, 4) + '\x21';
    body += std::string(kReserved, '\0') + "root" + '\0' + '\0';
    auto sent = send_text(socket, packet(body, 1));
    return sent ? await_reply(socket, *this) : sent;
  }

  [[nodiscard]] std::string request(std::uint64_t number) override {
    constexpr char kQuery = 3;
    return packet(kQuery + numbered(query_, number), 0);
  }

  Reply receive(std::string_view bytes) override {
    constexpr std::size_t kHead = 4;
    constexpr std::size_t kLongestEof = 9;
    constexpr auto kEof = static_cast<unsigned char>(0xfe);
    constexpr auto kError = static_cast<unsigned char>(0xff);
    constexpr unsigned char kGreeting = 10;
    buffer_ += bytes;
    while (buffer_.size() >= kHead) {
      const std::string reversed{buffer_[2], buffer_[1], buffer_[0]};
      const std::size_t size = big_endian(reversed);
      if (buffer_.size() < kHead + size) {
        break;
      }
      const auto first = static_cast<unsigned char>(buffer_[kHead]);
      buffer_.erase(0, kHead + size);
      if (eofs_ == 0 && !in_set_) {
        if (first == kError) {
          return Reply::kRefused;
        }
        if (first == 0 || (first == kGreeting && !greeted_)) {
          greeted_ = true;
          return Reply::kComplete;
        }
        in_set_ = true;
      } else if (first == kEof && size < kLongestEof && ++eofs_ == 2) {
        eofs_ = 0;
        in_set_ = false;
        return Reply::kComplete;
      }
    }
    return Reply::kIncomplete;
  }

 private:
  static std::string little_endian(std::uint32_t value, int bytes) {
    const auto text = big_endian(value, bytes);
    return {text.rbegin(), text.rend()};
  }

  static std::string packet(const std::string& body, char number) {
    return little_endian(static_cast<std::uint32_t>(body.size()), 3) + number + body;
  }

  std::string query_;
  std::string buffer_;
  bool greeted_ = false;
  bool in_set_ = false;
  int eofs_ = 0;
};

class Dns final : public Protocol {
 public:
  explicit Dns(std::string name) : name_(std::move(name)) {}

  [[nodiscard]] std::string request(std::uint64_t number) override {
    // One question, an additional record: OPT, 1232 bytes, DO.
    static constexpr std::string_view kCounts("\x00\x00\x00\x01\x00\x00\x00\x00\x00\x01", 10);
    static constexpr std::string_view kTypeAndOpt("\x00\x00\x01\x00\x01\x00\x00\x29\x04\xd0\x00\x00\x80\x00\x00\x00",
                                                  16);
    id_ += 1;
    std::string labels;
    std::string rest = numbered(name_, number) + ".";
    for (auto dot = rest.find('.'); dot != std::string::npos; dot = rest.find('.')) {
      labels += static_cast<char>(dot) + rest.substr(0, dot);
      rest.erase(0, dot + 1);
    }
    return big_endian(id_, 2) + std::string(kCounts) + labels + std::string(kTypeAndOpt);
  }

  Reply receive(std::string_view bytes) override {
    constexpr std::size_t kHead = 12;
    constexpr unsigned kCodeMask = 0x0f;
    // An answer that comes after its time was given up on is to a question with another number.
    if (bytes.size() < kHead || big_endian(bytes.substr(0, 2)) != id_) {
      return Reply::kIncomplete;
    }
    return (static_cast<unsigned char>(bytes[3]) & kCodeMask) == 0 ? Reply::kComplete : Reply::kRefused;
  }

 private:
  std::string name_;
  std::uint16_t id_ = 0;
};

}  // namespace

std::unique_ptr<Protocol> make_postgres(const std::string& query) {
  return std::make_unique<Postgres>(query);
}

std::unique_ptr<Protocol> make_mysql(const std::string& query) {
  return std::make_unique<Mysql>(query);
}

std::unique_ptr<Protocol> make_dns(const std::string& name) {
  return std::make_unique<Dns>(name);
}

}  // namespace tacho::support
