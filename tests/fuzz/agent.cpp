#include "fuzz/agent.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <future>
#include <map>
#include <string_view>
#include <system_error>
#include <vector>

#include "kernel/support/wire.h"

namespace tacho::fuzz {
namespace {

using kernel_test::must;
using kernel_test::now_ns;

constexpr int kPatienceMs = 5'000;
constexpr std::size_t kRecordHeader = 5;
/// Of a message of a handshake: type and length (RFC 8446, 4).
constexpr std::size_t kMessageHeader = 4;

sockaddr_un unix_address(How kind, std::int64_t number) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string name = (kind == How::letter ? "tacho-fuzz-letters-" : "tacho-fuzz-") + std::to_string(number);
  std::ranges::copy(name, &address.sun_path[1]);
  return address;
}

bool is_unix(How kind) {
  return kind == How::local || kind == How::letter;
}

int family_of(How kind) {
  return is_unix(kind) ? AF_UNIX : kind == How::tcp6 || kind == How::udp6 ? AF_INET6 : AF_INET;
}

int type_of(How kind) {
  return is_one_of(kind, kDatagramKinds) ? SOCK_DGRAM : SOCK_STREAM;
}

/// Runs `call` with the socket address of a kind.
template <class Call>
int with_address(How kind, std::int64_t number, Call call) {
  if (is_unix(kind)) {
    const sockaddr_un address = unix_address(kind, number);
    return call(reinterpret_cast<const sockaddr*>(&address), socklen_t{sizeof(address)});
  }
  if (family_of(kind) == AF_INET6) {
    sockaddr_in6 address{};
    address.sin6_family = AF_INET6;
    address.sin6_port = htons(static_cast<std::uint16_t>(number));
    address.sin6_addr = in6addr_loopback;
    return call(reinterpret_cast<const sockaddr*>(&address), socklen_t{sizeof(address)});
  }
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(number));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return call(reinterpret_cast<const sockaddr*>(&address), socklen_t{sizeof(address)});
}

/// Over what is there: a line, or version 2 of the header (haproxy's proxy-protocol.txt, 2.1 and 2.2).
void write_proxy_header(std::vector<char>& bytes) {
  using namespace std::string_view_literals;
  constexpr std::size_t kFixed = 16;
  if (bytes.size() % 2 == 1) {
    std::ranges::copy("PROXY UNKNOWN "sv, bytes.begin());
    std::ranges::copy("\r\n"sv, bytes.end() - 2);
    return;
  }
  std::ranges::copy("\r\n\r\n\0\r\nQUIT\n\x21\x11"sv, bytes.begin());
  bytes[14] = static_cast<char>((bytes.size() - kFixed) >> 8);
  bytes[15] = static_cast<char>(bytes.size() - kFixed);
}

/// The hands of an agent: what happens in its process.
class Hands {
 public:
  Done follow(const Order& order) {
    Done done;
    done.when.earliest = now_ns();
    errno = 0;
    done.result = work(order);
    if (done.result < 0) {
      done.result = -errno;
    }
    done.when.latest = now_ns();
    if (order.task == Task::end_read) {
      done = finished_;
    }
    return done;
  }

 private:
  std::int64_t work(const Order& order) {
    switch (order.task) {
      case Task::listen:
        return listen(order);
      case Task::connect:
        return connect(order);
      case Task::accept:
        return keep(order.slot,
                    ::accept4(slots_.at(static_cast<int>(order.number)).get(), nullptr, nullptr, SOCK_CLOEXEC));
      case Task::send:
        return send(order);
      case Task::receive:
        return receive(fd(order), order);
      case Task::begin_read:
        // The slots are this thread's: the next order may change them before the other has begun.
        readers_[order.slot] = std::async(std::launch::async, [socket = fd(order), order] {
          Done done;
          done.when.earliest = now_ns();
          done.result = receive(socket, order);
          if (done.result < 0) {
            done.result = -errno;
          }
          done.when.latest = now_ns();
          return done;
        });
        return 0;
      case Task::end_read:
        finished_ = readers_.at(order.slot).get();
        readers_.erase(order.slot);
        return 0;
      case Task::await_bytes:
        return await_bytes(order);
      case Task::await_end: {
        pollfd ended{.fd = fd(order), .events = POLLRDHUP, .revents = 0};
        return ::poll(&ended, 1, kPatienceMs) == 1 ? ended.revents : -1;
      }
      case Task::shut:
        return ::shutdown(fd(order), SHUT_WR);
      case Task::reset: {
        const linger abort{.l_onoff = 1, .l_linger = 0};
        must(::setsockopt(fd(order), SOL_SOCKET, SO_LINGER, &abort, sizeof(abort)) == 0, "SO_LINGER");
        slots_.erase(order.slot);
        return 0;
      }
      case Task::close:
        slots_.erase(order.slot);
        return 0;
      case Task::descriptor:
        return fd(order);
      case Task::take: {
        const UniqueFd process(static_cast<int>(::syscall(SYS_pidfd_open, order.number, 0)));
        return keep(order.slot, static_cast<int>(::syscall(SYS_pidfd_getfd, process.get(), order.bytes, 0)));
      }
    }
    return -1;
  }

  int fd(const Order& order) { return slots_.at(order.slot).get(); }

  std::int64_t keep(int slot, int descriptor) {
    if (descriptor < 0) {
      return -1;
    }
    UniqueFd& socket = slots_[slot];
    socket.reset(descriptor);
    // What a unix socket answers to this is not of interest.
    const int on = 1;
    ::setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    errno = 0;
    return 0;
  }

  std::int64_t listen(const Order& order) {
    UniqueFd socket(::socket(family_of(order.how), type_of(order.how) | SOCK_CLOEXEC, 0));
    const int bound =
        with_address(order.how, is_unix(order.how) ? ::getpid() : 0,
                     [&](const sockaddr* address, socklen_t length) { return ::bind(socket.get(), address, length); });
    must(bound == 0, "bind");
    must(type_of(order.how) == SOCK_DGRAM || ::listen(socket.get(), 64) == 0, "listen");
    const std::int64_t number = is_unix(order.how) ? ::getpid() : kernel_test::port_of(socket);
    slots_[order.slot] = std::move(socket);
    return number;
  }

  std::int64_t connect(const Order& order) {
    UniqueFd socket(::socket(family_of(order.how), type_of(order.how) | SOCK_CLOEXEC, 0));
    if (order.how == How::letter) {
      // Who is to get a reply needs an address.
      ++letters_;
      const int bound = with_address(order.how, own_address(), [&](const sockaddr* address, socklen_t length) {
        return ::bind(socket.get(), address, length);
      });
      must(bound == 0, "bind");
    }
    const int done = with_address(order.how, order.number, [&](const sockaddr* address, socklen_t length) {
      return ::connect(socket.get(), address, length);
    });
    const std::int64_t port = order.how == How::letter  ? own_address()
                              : order.how == How::local ? 0
                                                        : kernel_test::port_of(socket);
    return done < 0 || keep(order.slot, socket.release()) < 0 ? -1 : port;
  }

  [[nodiscard]] std::int64_t own_address() const { return ::getpid() * std::int64_t{1'000'000} + letters_; }

  /// Text that begins like no other, or a TLS record.
  std::vector<char> make(Content content, std::size_t size) {
    constexpr std::array<char, 11> kTypes{0, 22, 22, 20, 21, 23, 23, 23, 0, 0, 22};
    std::vector<char> bytes(size);
    for (char& byte : bytes) {
      random_ = random_ * 6364136223846793005ULL + 1442695040888963407ULL;
      byte = static_cast<char>('A' + (random_ >> 33) % 53);
    }
    if (content == Content::proxy) {
      write_proxy_header(bytes);
    } else if (content == Content::quic) {
      // A long header of version 1 (RFC 9000, 17.2).
      std::ranges::copy(std::string_view("\xc3\0\0\0\1", 5), bytes.begin());
    } else if (content != Content::text && size >= kRecordHeader) {
      bytes[0] = kTypes.at(static_cast<std::size_t>(content));
      bytes[1] = 3;
      bytes[2] = content == Content::hello ? 1 : 3;
      bytes[3] = static_cast<char>((size - kRecordHeader) >> 8);
      bytes[4] = static_cast<char>(size - kRecordHeader);
      if ((content == Content::hello || content == Content::welcome) && size >= kRecordHeader + kMessageHeader) {
        const std::size_t length = size - kRecordHeader - kMessageHeader;
        bytes[kRecordHeader] = content == Content::hello ? 1 : 2;
        bytes[kRecordHeader + 1] = 0;
        bytes[kRecordHeader + 2] = static_cast<char>(length >> 8);
        bytes[kRecordHeader + 3] = static_cast<char>(length);
      }
    }
    return bytes;
  }

  std::int64_t send(const Order& order) {
    std::vector<char> bytes = make(order.content, static_cast<std::size_t>(order.bytes));
    const std::size_t half = bytes.size() / 2;
    std::array<iovec, 2> parts{iovec{bytes.data(), half}, iovec{bytes.data() + half, bytes.size() - half}};
    msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = parts.size();
    if (order.number != 0) {
      return with_address(order.how, order.number, [&](const sockaddr* address, socklen_t length) {
        return static_cast<int>(::sendto(fd(order), bytes.data(), bytes.size(), 0, address, length));
      });
    }
    switch (order.how) {
      case How::write:
        return ::write(fd(order), bytes.data(), bytes.size());
      case How::writev:
        return ::writev(fd(order), parts.data(), 2);
      case How::sendmsg:
        return ::sendmsg(fd(order), &message, MSG_NOSIGNAL);
      case How::sendfile: {
        const UniqueFd file(::memfd_create("fuzz", MFD_CLOEXEC));
        must(::pwrite(file.get(), bytes.data(), bytes.size(), 0) == order.bytes, "pwrite");
        return ::sendfile(fd(order), file.get(), nullptr, bytes.size());
      }
      case How::more:
      case How::several: {
        const int flags = MSG_NOSIGNAL | (order.how == How::more ? MSG_MORE : 0);
        const auto first = ::send(fd(order), bytes.data(), half, flags);
        const auto second = first < 0 ? -1 : ::send(fd(order), bytes.data() + half, bytes.size() - half, MSG_NOSIGNAL);
        return second < 0 ? -1 : first + second;
      }
      default:
        return ::send(fd(order), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    }
  }

  static std::int64_t receive(int socket, const Order& order) {
    std::vector<char> bytes(static_cast<std::size_t>(order.bytes));
    const std::size_t half = bytes.size() / 2;
    std::array<iovec, 2> parts{iovec{bytes.data(), half}, iovec{bytes.data() + half, bytes.size() - half}};
    msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = parts.size();
    switch (order.how) {
      case How::read:
        return ::read(socket, bytes.data(), bytes.size());
      case How::readv:
        return ::readv(socket, parts.data(), 2);
      case How::recvmsg:
        return ::recvmsg(socket, &message, 0);
      case How::peek:
        return ::recv(socket, bytes.data(), bytes.size(), MSG_PEEK);
      default:
        return ::recv(socket, bytes.data(), bytes.size(), 0);
    }
  }

  std::int64_t await_bytes(const Order& order) {
    const std::int64_t deadline = now_ns() + std::int64_t{kPatienceMs} * 1'000'000;
    int readable = 0;
    while (::ioctl(fd(order), FIONREAD, &readable) == 0 && readable < order.bytes && now_ns() < deadline) {
      ::sched_yield();
    }
    return readable;
  }

  std::map<int, UniqueFd> slots_;
  std::map<int, std::future<Done>> readers_;
  Done finished_;
  int letters_ = 0;  ///< sockets of that kind that were connected
  std::uint64_t random_ = static_cast<std::uint64_t>(::getpid());
};

}  // namespace

Agent::Agent(const std::string& cgroup)
    : child_(std::make_unique<kernel_test::Child>(cgroup, [](kernel_test::Line& line) {
        // It lives as long as we do.
        ::alarm(0);
        Hands hands;
        for (;;) {
          // Pipes are seen by no probe.
          std::array<std::uint64_t, 3> words{};
          line.hear(words);
          const Done done = hands.follow(Order{.task = static_cast<Task>(words[0] & 0xff),
                                               .how = static_cast<How>(words[0] >> 8 & 0xff),
                                               .content = static_cast<Content>(words[0] >> 16 & 0xff),
                                               .slot = static_cast<int>(words[0] >> 32),
                                               .bytes = static_cast<int>(words[1]),
                                               .number = static_cast<std::int64_t>(words[2])});
          line.tell(std::array{std::bit_cast<std::uint64_t>(done.result),
                               std::bit_cast<std::uint64_t>(done.when.earliest),
                               std::bit_cast<std::uint64_t>(done.when.latest)});
        }
      })) {}

Done Agent::order(const Order& order) const {
  child_->tell(std::array{static_cast<std::uint64_t>(order.task) | static_cast<std::uint64_t>(order.how) << 8 |
                              static_cast<std::uint64_t>(order.content) << 16 |
                              static_cast<std::uint64_t>(order.slot) << 32,
                          static_cast<std::uint64_t>(order.bytes), std::bit_cast<std::uint64_t>(order.number)});
  std::array<std::uint64_t, 3> words{};
  child_->hear(words);
  return {.result = std::bit_cast<std::int64_t>(words[0]),
          .when = {.earliest = std::bit_cast<std::int64_t>(words[1]), .latest = std::bit_cast<std::int64_t>(words[2])}};
}

}  // namespace tacho::fuzz
