#pragma once

#include <netinet/in.h>
#include <sys/types.h>

#include <cstdint>
#include <ctime>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/unique_fd.h"

// Sockets for workloads, in parents and children; what fails throws.

namespace tacho::kernel_test {

/// Throws with errno unless `good`.
void must(bool good, const char* what);

/// The clock of the programs (CLOCK_MONOTONIC).
std::int64_t now_ns();

/// An address of the loopback interface.
sockaddr_in loopback(std::uint16_t port);
/// A listening TCP socket of the loopback interface.
UniqueFd listen_tcp(std::uint16_t port = 0);
std::uint16_t port_of(const UniqueFd& socket);
/// A connection to it that sends at once (TCP_NODELAY).
UniqueFd connect_tcp(std::uint16_t port);
UniqueFd accept_from(const UniqueFd& listener);
/// The other process' socket of that number, as ours.
UniqueFd take_from(pid_t pid, int descriptor);

/// Exactly one send of `size` bytes, none of which is left over.
void send_once(const UniqueFd& socket, std::size_t size);
/// Exactly one send of these bytes.
void send_bytes(const UniqueFd& socket, std::string_view bytes);
/// Exactly one send of them, each from a buffer of its own.
void send_parts(const UniqueFd& socket, const std::vector<std::string_view>& parts);
/// Exactly one send of these bytes, from buffers of this size: libraries of Java hand over in pieces what they encrypt.
void send_in_buffers(const UniqueFd& socket, std::string_view bytes, std::size_t size = 62);
/// Exactly one receive that waits for `size` bytes.
void receive_once(const UniqueFd& socket, std::size_t size);

/// `count` times: receives a request of `request` bytes and answers it with `reply` bytes, one operation each.
void serve(const UniqueFd& socket, int count, std::size_t request, std::size_t reply);
/// `count` times: the client's side of that.
void ask(const UniqueFd& socket, int count, std::size_t request, std::size_t reply);

/// Closes it by an RST.
void reset_connection(UniqueFd& socket);
/// Until the other side's FIN or RST is there.
void wait_for_end(const UniqueFd& socket);

}  // namespace tacho::kernel_test
