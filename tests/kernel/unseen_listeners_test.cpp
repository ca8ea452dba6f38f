// Servers that are older than tacho and whose files it cannot see, as those of other containers of its pod: every
// container has a PID namespace of its own. Here the listening socket is in nobody's files while tacho looks: it is on
// its way from one end of a pair of unix sockets to the other.

#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <array>
#include <catch2/catch.hpp>
#include <cstddef>
#include <cstring>
#include <string>

#include "kernel/support/child.h"
#include "kernel/support/running.h"
#include "kernel/support/wire.h"

using tacho::UniqueFd;
using namespace tacho::kernel_test;

namespace {

constexpr int kRequests = 23;

/// Keeps a descriptor out of all processes' files until it is taken back.
class Hidden {
 public:
  explicit Hidden(UniqueFd socket) {
    std::array<int, 2> pair{};
    must(::socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, pair.data()) == 0, "socketpair");
    near_ = UniqueFd(pair[0]);
    far_ = UniqueFd(pair[1]);
    Message message;
    message.right = {
        .length = CMSG_LEN(sizeof(int)), .level = SOL_SOCKET, .type = SCM_RIGHTS, .descriptor = socket.get()};
    must(::sendmsg(near_.get(), &message.header, 0) == 1, "sendmsg");
  }
  [[nodiscard]] UniqueFd take() const {
    Message message;
    must(::recvmsg(far_.get(), &message.header, MSG_CMSG_CLOEXEC) == 1, "recvmsg");
    return UniqueFd(message.right.descriptor);
  }

 private:
  /// cmsghdr with a descriptor: C++ wants nothing after its flexible array.
  struct Right {
    std::size_t length;
    int level;
    int type;
    int descriptor;
  };
  static_assert(offsetof(Right, type) == offsetof(cmsghdr, cmsg_type) && offsetof(Right, descriptor) == CMSG_LEN(0));
  struct Message {
    char byte = 'x';
    iovec data{.iov_base = &byte, .iov_len = 1};
    Right right{};
    msghdr header{.msg_name = nullptr,
                  .msg_namelen = 0,
                  .msg_iov = &data,
                  .msg_iovlen = 1,
                  .msg_control = &right,
                  .msg_controllen = sizeof(right),
                  .msg_flags = 0};
  };

  UniqueFd near_;
  UniqueFd far_;
};

/// A network of its own, in which only it listens.
void unshare_network() {
  must(::unshare(CLONE_NEWNET) == 0, "unshare");
  const UniqueFd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request{};
  std::memcpy(request.ifr_name, "lo", 3);
  must(::ioctl(socket.get(), SIOCGIFFLAGS, &request) == 0, "SIOCGIFFLAGS");
  request.ifr_flags = static_cast<short>(request.ifr_flags | IFF_UP);
  must(::ioctl(socket.get(), SIOCSIFFLAGS, &request) == 0, "SIOCSIFFLAGS");
}

void exchange(const UniqueFd& client, const UniqueFd& server) {
  for (int i = 0; i < kRequests; ++i) {
    send_once(client, 10);
    receive_once(server, 10);
    send_once(server, 20);
    receive_once(client, 20);
  }
}

double requests(Running& tacho) {
  return tacho.page().value("tacho_requests_total", {{"target", "t"}});
}

tacho::config::Config quiet(const std::string& cgroup) {
  auto config = watching(cgroup);
  config.probes.poll.enabled = false;
  return config;
}

}  // namespace

TEST_CASE("a server that listened unseen gets its role with every new connection") {
  for (const bool other_network : {false, true}) {
    CAPTURE(other_network);
    const Cgroup cgroup(playground() + "/" + unique_name());
    Child server(cgroup.directory(), [other_network](Line& parent) {
      if (other_network) {
        unshare_network();
      }
      UniqueFd listener = listen_tcp();
      const auto port = port_of(listener);
      const Hidden hidden(std::move(listener));
      parent.tell();
      (void)parent.hear();
      const UniqueFd found = hidden.take();
      for (int i = 0; i < 2; ++i) {
        const UniqueFd client = connect_tcp(port);
        exchange(client, accept_from(found));
      }
      parent.tell();
      (void)parent.hear();
    });
    (void)server.hear();
    Running tacho(quiet(cgroup.path()));
    server.tell();
    (void)server.hear();
    const Page page = tacho.page();
    CHECK(requests(tacho) == 2 * kRequests);
    CHECK(page.value("tacho_request_duration_seconds_count", {{"target", "t"}}) == 2 * kRequests);
    CHECK(page.value("tacho_connections_total", {{"target", "t"}, {"role", "server"}}) == 2);
    CHECK(page.value("tacho_connections_total", {{"target", "t"}, {"role", "client"}}) == 2);
    server.tell();
    server.finish();
  }
}

TEST_CASE("a connection that is older than tacho to a server that listened unseen is served") {
  const Cgroup cgroup(playground() + "/" + unique_name());
  Child server(cgroup.directory(), [](Line& parent) {
    UniqueFd listener = listen_tcp();
    parent.tell(port_of(listener));
    UniqueFd connection = accept_from(listener);
    const Hidden hidden_listener(std::move(listener));
    const Hidden hidden_connection(std::move(connection));
    parent.tell();
    (void)parent.hear();
    serve(hidden_connection.take(), kRequests, 10, 20);
    parent.tell();
    (void)parent.hear();
  });
  const UniqueFd client = connect_tcp(static_cast<std::uint16_t>(server.hear()));
  (void)server.hear();
  Running tacho(quiet(cgroup.path()));
  server.tell();
  ask(client, kRequests, 10, 20);
  (void)server.hear();
  CHECK(requests(tacho) == kRequests);
  server.tell();
  server.finish();
}
