// What tacho remembers of a socket is little of what the kernel lets a socket's options use (C9).

#include <linux/sock_diag.h>
#include <sys/socket.h>

#include <array>
#include <catch2/catch.hpp>
#include <cstdint>

#include "kernel/support/child.h"
#include "kernel/support/datagrams.h"
#include "kernel/support/running.h"
#include "kernel/support/wire.h"

using tacho::UniqueFd;
using namespace tacho::kernel_test;

namespace {

/// A twentieth of net.core.optmem_max before Linux 6.8.
constexpr std::uint64_t kMost = 20'480 / 20;

/// Bytes that a socket's options use; storage of programs is one of them.
std::uint64_t option_bytes(const UniqueFd& socket) {
  std::array<std::uint32_t, SK_MEMINFO_VARS> memory{};
  socklen_t length = sizeof(memory);
  must(::getsockopt(socket.get(), SOL_SOCKET, SO_MEMINFO, memory.data(), &length) == 0, "SO_MEMINFO");
  return memory[SK_MEMINFO_OPTMEM];
}

}  // namespace

TEST_CASE("of what a socket's options may use tacho takes a twentieth at the most") {
  constexpr int kOpen = 300;
  const Watched where;
  Child server(where.directory(), [](Line& parent) {
    const UniqueFd listener = listen_tcp();
    parent.tell(port_of(listener));
    const UniqueFd connection = accept_from(listener);
    serve(connection, 3, 31, 67);
    parent.tell(option_bytes(connection));
    const UniqueFd datagrams = bound_socket(0);
    parent.tell(port_of(datagrams));
    for (int i = 0; i < kOpen; ++i) {
      receive_once(datagrams, 31);
      parent.tell();
    }
    parent.tell(option_bytes(datagrams));
    (void)parent.hear();
  });
  const UniqueFd client = connect_tcp(static_cast<std::uint16_t>(server.hear()));
  ask(client, 3, 31, 67);
  const std::uint64_t of_connection = server.hear();
  const UniqueFd asking = datagram_socket();
  connect_to(asking, static_cast<std::uint16_t>(server.hear()));
  for (int i = 0; i < kOpen; ++i) {
    send_once(asking, 31);
    (void)server.hear();
  }
  const std::uint64_t of_datagrams = server.hear();
  CHECK(where.value("tacho_requests_total") == 3);
  CHECK(where.value("tacho_requests_in_flight") == kOpen);
  CAPTURE(of_connection, of_datagrams);
  CHECK(of_connection <= kMost);
  CHECK(of_datagrams <= kMost);
  server.tell();
  server.finish();
}
