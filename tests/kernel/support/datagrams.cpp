#include "kernel/support/datagrams.h"

#include <poll.h>
#include <sched.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <stdexcept>
#include <string>

#include "kernel/support/wire.h"

namespace tacho::kernel_test {
namespace {

constexpr int kTriesAtOnce = 200;  // some 0.1 ms: far more than between a datagram and the hook of its arrival
// The guests of tests/matrix take a minute until a tacho has begun, by their own clock.
constexpr std::chrono::seconds kPatience{100};

}  // namespace

UniqueFd datagram_socket() {
  UniqueFd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  must(socket.get() >= 0, "socket");
  return socket;
}

UniqueFd bound_socket(std::uint16_t first) {
  constexpr std::uint16_t kEnd = 32768;
  UniqueFd socket = datagram_socket();
  for (std::uint16_t port = first; port < kEnd; ++port) {
    const auto address = loopback(port);
    if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0) {
      return socket;
    }
  }
  throw std::runtime_error("no port is free");
}

void connect_to(const UniqueFd& socket, std::uint16_t port) {
  const auto address = loopback(port);
  must(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0, "connect");
}

void send_to(const UniqueFd& socket, std::uint16_t port) {
  const std::string data(kDatagramBytes, 'd');
  const auto address = loopback(port);
  must(::sendto(socket.get(), data.data(), data.size(), 0, reinterpret_cast<const sockaddr*>(&address),
                sizeof(address)) == kDatagramBytes,
       "sendto");
}

void spin_for(const UniqueFd& socket, sockaddr_in& from) {
  std::array<char, kDatagramBytes> data{};
  socklen_t length = sizeof(from);
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  for (int tries = 1; ::recvfrom(socket.get(), data.data(), data.size(), MSG_DONTWAIT,
                                 reinterpret_cast<sockaddr*>(&from), &length) < 0;
       ++tries) {
    must(errno == EAGAIN, "recvfrom");
    // Whoever is to send may have no CPU, where more threads spin than there are CPUs.
    if (tries % kTriesAtOnce == 0) {
      ::sched_yield();
    }
    must(std::chrono::steady_clock::now() < deadline, "nothing came");
  }
}

sockaddr_in spin_for(const UniqueFd& socket) {
  sockaddr_in from{};
  spin_for(socket, from);
  return from;
}

sockaddr_in wait_for_one(const UniqueFd& socket) {
  pollfd wanted{.fd = socket.get(), .events = POLLIN, .revents = 0};
  must(::poll(&wanted, 1, std::chrono::milliseconds(kPatience).count()) == 1, "nothing came");
  return spin_for(socket);
}

void answer_one(const UniqueFd& socket) {
  send_to(socket, ntohs(wait_for_one(socket).sin_port));
}

void send_back(const UniqueFd& socket, int datagrams) {
  for (int i = 0; i < datagrams; ++i) {
    send_to(socket, ntohs(spin_for(socket).sin_port));
  }
}

Child echo_server(const std::string& cgroup, std::uint16_t first, int datagrams) {
  return Child(cgroup, [first, datagrams](Line& parent) {
    const UniqueFd socket = bound_socket(first);
    parent.tell(port_of(socket));
    send_back(socket, datagrams);
    parent.tell();
    (void)parent.hear();
  });
}

Batch::Batch(std::size_t most) : data_(most), from_(most), parts_(most), messages_(most) {
  for (std::size_t i = 0; i < most; ++i) {
    parts_[i] = {.iov_base = data_[i].data(), .iov_len = kDatagramBytes};
    messages_[i].msg_hdr = {.msg_name = &from_[i],
                            .msg_namelen = sizeof(from_[i]),
                            .msg_iov = &parts_[i],
                            .msg_iovlen = 1,
                            .msg_control = nullptr,
                            .msg_controllen = 0,
                            .msg_flags = 0};
  }
}

std::size_t Batch::receive(const UniqueFd& socket) {
  const int got =
      ::recvmmsg(socket.get(), messages_.data(), static_cast<unsigned>(messages_.size()), MSG_WAITFORONE, nullptr);
  must(got >= 0 || errno == EAGAIN, "recvmmsg");
  return got > 0 ? static_cast<std::size_t>(got) : 0;
}

void Batch::send(const UniqueFd& socket, std::size_t count) {
  must(::sendmmsg(socket.get(), messages_.data(), static_cast<unsigned>(count), 0) == static_cast<int>(count),
       "sendmmsg");
}

void serve_in_batches(const UniqueFd& socket, std::size_t most, int datagrams, std::atomic<int>& answered) {
  Batch batch(most);
  while (answered < datagrams) {
    const std::size_t got = batch.receive(socket);
    batch.send(socket, got);
    answered += static_cast<int>(got);
  }
}

std::string peer_at(std::uint16_t port) {
  return "127.0.0.1:" + std::to_string(port);
}

double calls_to(const Watched& where, const UniqueFd& peer) {
  return where.value("tacho_dependency_calls_total", {{"peer", peer_at(port_of(peer))}});
}

}  // namespace tacho::kernel_test
