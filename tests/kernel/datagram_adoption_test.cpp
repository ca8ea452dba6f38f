// Datagram sockets that are busy at the moment at which tacho finds them.

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "kernel/support/child.h"
#include "kernel/support/datagrams.h"
#include "kernel/support/running.h"
#include "kernel/support/wire.h"

using tacho::UniqueFd;
using namespace tacho::kernel_test;

namespace {

constexpr std::size_t kSockets = 16;
constexpr std::size_t kHeld = kSockets / 2;
constexpr std::uint64_t kLater = 100 * kSockets;

/// Requests of one kind of socket to the next of `kSockets` in turn. A request is answered `kHeld` steps later: at any
/// moment half of the servers' sockets are about to send, and half of the clients' about to receive.
struct Load {
  std::array<sockaddr_storage, kSockets> servers;
  socklen_t length;
  std::atomic<bool> stop;
  std::atomic<std::uint64_t> steps;  ///< of a run, once that is known
};

UniqueFd unix_socket(const std::string& name, sockaddr_un& address) {
  UniqueFd socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  address = {};
  address.sun_family = AF_UNIX;
  std::memcpy(&address.sun_path[1], name.data(), name.size());
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  must(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), length) == 0, "bind");
  return socket;
}

enum class Kind : std::uint8_t { udp, connected_udp, fixed_udp, unix };

/// Each of the same length.
std::string unix_name(const std::string& of, std::size_t number) {
  return of + (number < 10 ? "0" : "") + std::to_string(number);
}

Child serving(const std::string& cgroup, Kind kind, const std::string& name, const Shared<Load>& load) {
  return Child(cgroup, [=, &load](Line& parent) {
    std::vector<UniqueFd> sockets;
    for (std::size_t i = 0; i < kSockets; ++i) {
      sockaddr_storage& at = load->servers.at(i);
      if (kind == Kind::unix) {
        sockaddr_un address{};
        sockets.push_back(unix_socket(unix_name(name + "s", i), address));
        std::memcpy(&at, &address, sizeof(address));
        load->length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size() + 3);
      } else {
        sockets.push_back(bound_socket(20100));
        const sockaddr_in address = loopback(port_of(sockets.back()));
        std::memcpy(&at, &address, sizeof(address));
        load->length = sizeof(address);
      }
    }
    parent.tell();
    std::vector<std::array<char, kDatagramBytes>> data(kSockets);
    std::array<sockaddr_storage, kSockets> from{};
    std::array<socklen_t, kSockets> lengths{};
    const auto reply = [&](std::uint64_t step) {
      const std::size_t i = step % kSockets;
      must(::sendto(sockets[i].get(), data[i].data(), kDatagramBytes, 0, reinterpret_cast<const sockaddr*>(&from[i]),
                    lengths[i]) == kDatagramBytes,
           "reply");
    };
    while (parent.hear() != 0) {
      std::uint64_t step = 0;
      do {
        const std::size_t i = step % kSockets;
        lengths[i] = sizeof(from[i]);
        must(::recvfrom(sockets[i].get(), data[i].data(), kDatagramBytes, 0, reinterpret_cast<sockaddr*>(&from[i]),
                        &lengths[i]) == kDatagramBytes,
             "request");
        if (step >= kHeld) {
          reply(step - kHeld);
        }
      } while (++step != load->steps);
      for (std::uint64_t late = step - kHeld; late < step; ++late) {
        reply(late);
      }
      parent.tell();
    }
  });
}

Child asking(const std::string& cgroup, Kind kind, const std::string& name, const Shared<Load>& load) {
  return Child(cgroup, [=, &load](Line& parent) {
    std::vector<UniqueFd> sockets;
    for (std::size_t i = 0; i < kSockets; ++i) {
      sockaddr_un own{};
      sockets.push_back(kind == Kind::unix ? unix_socket(unix_name(name + "c", i), own)
                                           : bound_socket(kind == Kind::fixed_udp ? 22100 : 0));
      if (kind == Kind::unix || kind == Kind::connected_udp) {
        must(::connect(sockets[i].get(), reinterpret_cast<const sockaddr*>(&load->servers.at(i)), load->length) == 0,
             "connect");
      }
    }
    const std::string data(kDatagramBytes, 'd');
    // A word is how many steps it makes; 1: until it is to stop.
    while (const auto order = parent.hear()) {
      const auto answer = [&](std::uint64_t step) { receive_once(sockets[step % kSockets], kDatagramBytes); };
      std::uint64_t step = 0;
      for (bool last = false; !last; ++step) {
        last = step >= kSockets && (order == 1 ? load->stop.load() : step + 1 == order);
        if (last) {
          load->steps = step + 1;
        }
        const std::size_t i = step % kSockets;
        const bool to = kind == Kind::udp || kind == Kind::fixed_udp;
        must(::sendto(sockets[i].get(), data.data(), data.size(), 0,
                      to ? reinterpret_cast<const sockaddr*>(&load->servers.at(i)) : nullptr,
                      to ? load->length : 0) == kDatagramBytes,
             "request");
        if (step >= kHeld) {
          answer(step - kHeld);
        }
      }
      for (std::uint64_t late = step - kHeld; late < step; ++late) {
        answer(late);
      }
      parent.tell();
    }
  });
}

struct Counts {
  double requests = 0;
  double calls = 0;
  double sends = 0;
  double receives = 0;
};

Counts counted(Running& tacho, const std::string& target) {
  const Page page = tacho.page();
  const auto operations = [&](const char* direction) {
    return page.value("tacho_socket_operations_total", {{"target", target}, {"direction", direction}});
  };
  return {.requests = page.value("tacho_requests_total", {{"target", target}}),
          .calls = page.sum("tacho_dependency_calls_total", {{"target", target}}),
          .sends = operations("send"),
          .receives = operations("receive")};
}

}  // namespace

TEST_CASE("a busy datagram server is counted exactly from the moment at which tacho finds it, its clients too") {
  const Kind kind = GENERATE(Kind::udp, Kind::connected_udp, Kind::fixed_udp, Kind::unix);
  CAPTURE(static_cast<int>(kind));
  const Cgroup here(playground() + "/" + unique_name());
  const Cgroup there(playground() + "/" + unique_name());
  const Shared<Load> load;
  const std::string name = playground() + unique_name();
  Child server = serving(here.directory(), kind, name, load);
  (void)server.hear();
  Child client = asking(there.directory(), kind, name, load);
  server.tell();
  client.tell();

  auto config = watching(here.path());
  config.probes.poll.enabled = false;
  config.targets.front().name = "server";
  config.targets.push_back(config.targets.front());
  config.targets.back().name = "client";
  config.targets.back().cgroup = there.path();
  Running tacho(config);
  REQUIRE(tacho.wait_for([&] { return counted(tacho, "client").sends > 10 * kSockets; }));
  load->stop = true;
  (void)client.hear();
  (void)server.hear();
  const Counts served = counted(tacho, "server");
  const Counts asked = counted(tacho, "client");
  CHECK(served.receives >= 10 * kSockets);
  // What came before tacho did is no request; what was received before is answered, too.
  CHECK(served.requests <= served.receives);
  CHECK(served.requests >= served.receives - kSockets);
  CHECK(served.calls == 0);
  CHECK(asked.requests == 0);
  CHECK(asked.calls == asked.sends);

  load->steps = 0;
  server.tell();
  client.tell(kLater);
  (void)client.hear();
  (void)server.hear();
  CHECK(counted(tacho, "server").requests - served.requests == kLater);
  CHECK(counted(tacho, "server").calls == 0);
  CHECK(counted(tacho, "client").requests == 0);
  CHECK(counted(tacho, "client").calls - asked.calls == kLater);
  CHECK(tacho.page().value("tacho_requests_in_flight", {{"target", "server"}}) == 0);
  for (Child* child : {&client, &server}) {
    child->tell(0);
    child->finish();
  }
}

TEST_CASE("a datagram server that tacho finds about to answer is told from its client by their ports") {
  // On another address, so that both may have one port.
  constexpr std::uint32_t kHost = INADDR_LOOPBACK + 1;
  constexpr int kRequests = 60;
  constexpr int kFromKernel = -20'000;
  const auto first = static_cast<std::uint16_t>(GENERATE(20'302, 0));
  const int above = first == 0 ? kFromKernel : GENERATE(-20'000, 1, 0, -1);
  CAPTURE(first, above);
  const bool is_told = first != 0 && (above == kFromKernel || above > 0);
  const Cgroup cgroup(playground() + "/" + unique_name());
  Child server(cgroup.directory(), [first](Line& parent) {
    const UniqueFd socket = bound_socket(first);
    parent.tell(port_of(socket));
    const std::string data(kDatagramBytes, 'd');
    for (int i = 0; i < kRequests + 1; ++i) {
      const sockaddr_in from = wait_for_one(socket);
      if (i == 0) {
        parent.tell();
        (void)parent.hear();
      }
      must(::sendto(socket.get(), data.data(), data.size(), 0, reinterpret_cast<const sockaddr*>(&from),
                    sizeof(from)) == kDatagramBytes,
           "reply");
    }
    parent.tell();
    (void)parent.hear();
  });
  const auto port = static_cast<std::uint16_t>(server.hear());
  const UniqueFd client = datagram_socket();
  sockaddr_in own = loopback(above == kFromKernel ? 0 : static_cast<std::uint16_t>(port + above));
  own.sin_addr.s_addr = htonl(kHost);
  must(::bind(client.get(), reinterpret_cast<const sockaddr*>(&own), sizeof(own)) == 0, "bind");
  send_to(client, port);
  (void)server.hear();
  Running tacho(watching(cgroup.path()));
  const Labels target{{"target", "t"}};
  REQUIRE(tacho.wait_for([&] { return tacho.watches(target); }));
  server.tell();
  (void)wait_for_one(client);
  for (int i = 0; i < kRequests; ++i) {
    send_to(client, port);
    (void)wait_for_one(client);
  }
  (void)server.hear();
  CHECK(tacho.page().value("tacho_requests_total", target) == (is_told ? kRequests : 0));
  CHECK(tacho.page().sum("tacho_dependency_calls_total", target) == (is_told ? 0 : kRequests));
  server.tell();
  server.finish();
}
