#include "kernel/support/wire.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>

namespace tacho::kernel_test {
namespace {

constexpr std::size_t kLargest = 1 << 20;
// What is sent says nothing. What one test has received is not what the next one sends: it may look like TLS.
thread_local std::vector<char> buffer(kLargest);
thread_local std::vector<char> received(kLargest);

void send_at_once(const UniqueFd& socket) {
  const int on = 1;
  must(::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) == 0, "TCP_NODELAY");
}

}  // namespace

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

void must(bool good, const char* what) {
  if (!good) {
    throw std::system_error(errno, std::system_category(), what);
  }
}

std::int64_t now_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

UniqueFd listen_tcp(std::uint16_t port) {
  UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  must(::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0, "SO_REUSEADDR");
  const sockaddr_in address = loopback(port);
  must(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0, "bind");
  must(::listen(socket.get(), 64) == 0, "listen");
  return socket;
}

std::uint16_t port_of(const UniqueFd& socket) {
  sockaddr_in address{};
  socklen_t length = sizeof(address);
  must(::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &length) == 0, "getsockname");
  return ntohs(address.sin_port);
}

UniqueFd connect_tcp(std::uint16_t port) {
  UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_in address = loopback(port);
  must(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0, "connect");
  send_at_once(socket);
  return socket;
}

UniqueFd accept_from(const UniqueFd& listener) {
  UniqueFd socket(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  must(static_cast<bool>(socket), "accept");
  send_at_once(socket);
  return socket;
}

UniqueFd take_from(pid_t pid, int descriptor) {
  const UniqueFd process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  UniqueFd taken(static_cast<int>(::syscall(SYS_pidfd_getfd, process.get(), descriptor, 0)));
  must(taken.get() >= 0, "pidfd_getfd");
  return taken;
}

void send_bytes(const UniqueFd& socket, std::string_view bytes) {
  must(::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size()), "send");
}

void send_once(const UniqueFd& socket, std::size_t size) {
  must(size <= buffer.size(), "a send of more than kLargest");
  send_bytes(socket, {buffer.data(), size});
}

void send_parts(const UniqueFd& socket, const std::vector<std::string_view>& parts) {
  std::vector<iovec> buffers;
  ssize_t bytes = 0;
  for (const std::string_view part : parts) {
    buffers.push_back({.iov_base = const_cast<char*>(part.data()), .iov_len = part.size()});
    bytes += static_cast<ssize_t>(part.size());
  }
  must(::writev(socket.get(), buffers.data(), static_cast<int>(buffers.size())) == bytes, "writev");
}

void send_in_buffers(const UniqueFd& socket, std::string_view bytes, std::size_t size) {
  std::vector<std::string_view> buffers;
  for (std::size_t at = 0; at < bytes.size(); at += size) {
    buffers.push_back(bytes.substr(at, size));
  }
  send_parts(socket, buffers);
}

void receive_once(const UniqueFd& socket, std::size_t size) {
  must(size <= received.size(), "a receive of more than kLargest");
  must(::recv(socket.get(), received.data(), size, MSG_WAITALL) == static_cast<ssize_t>(size), "recv");
}

void serve(const UniqueFd& socket, int count, std::size_t request, std::size_t reply) {
  for (int i = 0; i < count; ++i) {
    receive_once(socket, request);
    send_once(socket, reply);
  }
}

void ask(const UniqueFd& socket, int count, std::size_t request, std::size_t reply) {
  for (int i = 0; i < count; ++i) {
    send_once(socket, request);
    receive_once(socket, reply);
  }
}

void reset_connection(UniqueFd& socket) {
  const linger abort{.l_onoff = 1, .l_linger = 0};
  must(::setsockopt(socket.get(), SOL_SOCKET, SO_LINGER, &abort, sizeof(abort)) == 0, "SO_LINGER");
  socket.reset();
}

void wait_for_end(const UniqueFd& socket) {
  pollfd waiting{.fd = socket.get(), .events = POLLRDHUP, .revents = 0};
  must(::poll(&waiting, 1, 10'000) == 1, "the end of the connection");
}

}  // namespace tacho::kernel_test
