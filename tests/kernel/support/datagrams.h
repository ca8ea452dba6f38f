#pragma once

#include <netinet/in.h>

#include <cstdint>

#include "base/unique_fd.h"

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

}  // namespace tacho::kernel_test
