#pragma once

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "kernel/support/child.h"
#include "kernel/support/running.h"

// Datagram sockets of the loopback interface; what fails throws.

namespace tacho::kernel_test {

/// Bytes of every datagram that these send or take.
inline constexpr std::size_t kDatagramBytes = 40;

UniqueFd datagram_socket();
/// On a free port from `first` to 32767, where the kernel gives none by itself; 0: one that it gives.
UniqueFd bound_socket(std::uint16_t first);
void connect_to(const UniqueFd& socket, std::uint16_t port);
void send_to(const UniqueFd& socket, std::uint16_t port);
/// Receives without ever sleeping. @return from where
sockaddr_in spin_for(const UniqueFd& socket);
/// The same. @param from where the kernel writes from where
void spin_for(const UniqueFd& socket, sockaddr_in& from);
/// Sleeps until something comes, as event loops do. @return from where
sockaddr_in wait_for_one(const UniqueFd& socket);
/// The same, and sends something there.
void answer_one(const UniqueFd& socket);
/// Sends the next datagrams back to where they come from.
void send_back(const UniqueFd& socket, int datagrams = 1);
/// A process with a bound socket, whose port it tells. It sends so many datagrams back, and tells that.
/// @param first as of bound_socket()
Child echo_server(const std::string& cgroup, std::uint16_t first, int datagrams);

/// Datagrams that one call receives and another one sends back to where they came from.
class Batch {
 public:
  explicit Batch(std::size_t most);
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;

  /// Waits for the first one only. @return how many have come; 0: none within the socket's patience
  std::size_t receive(const UniqueFd& socket);
  /// The first `count` of them, in one call.
  void send(const UniqueFd& socket, std::size_t count);
  /// Where one came from, and goes to.
  sockaddr_in& peer(std::size_t number) { return from_.at(number); }

 private:
  std::vector<std::array<char, kDatagramBytes>> data_;
  std::vector<sockaddr_in> from_;
  std::vector<iovec> parts_;
  std::vector<mmsghdr> messages_;
};

/// Sends back what comes, up to `most` in a call, until all who serve have answered so many. The socket has to be
/// patient for a while only (SO_RCVTIMEO), since another one may answer the last.
void serve_in_batches(const UniqueFd& socket, std::size_t most, int datagrams, std::atomic<int>& answered);

/// As the label `peer` names a port of this machine.
std::string peer_at(std::uint16_t port);
/// The calls that a target has made to the owner of a socket.
double calls_to(const Watched& where, const UniqueFd& peer);

}  // namespace tacho::kernel_test
