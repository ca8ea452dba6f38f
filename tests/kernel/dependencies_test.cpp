// Whom a target calls: names of peers, their limit.

#include <bpf/bpf.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "kernel/map_keys.h"
#include "kernel/support/cgroup.h"
#include "kernel/support/child.h"
#include "kernel/support/running.h"
#include "kernel/support/wire.h"

using tacho::UniqueFd;
using namespace tacho::kernel_test;

namespace {

constexpr int kRequests = 23;

double calls(const Page& page, const std::string& peer) {
  return page.value("tacho_dependency_calls_total", {{"target", "t"}, {"peer", peer}});
}

/// To an address of the loopback network over an IPv6 socket, as Java connects.
UniqueFd connect_mapped(std::uint8_t last, std::uint16_t port) {
  UniqueFd connection(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in6 peer{};
  peer.sin6_family = AF_INET6;
  peer.sin6_port = htons(port);
  const std::uint8_t address[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127, 0, 0, last};
  std::copy(std::begin(address), std::end(address), std::begin(peer.sin6_addr.s6_addr));
  must(::connect(connection.get(), reinterpret_cast<const sockaddr*>(&peer), sizeof(peer)) == 0, "connect");
  return connection;
}

UniqueFd listen_everywhere() {
  UniqueFd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in any{};
  any.sin_family = AF_INET;
  must(::bind(listener.get(), reinterpret_cast<const sockaddr*>(&any), sizeof(any)) == 0, "bind");
  must(::listen(listener.get(), 8) == 0, "listen");
  return listener;
}

/// A stream socket of the current directory, bound to a path of so many characters: short paths are relative ones.
UniqueFd unix_socket(std::size_t characters, bool listening) {
  UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::fill_n(address.sun_path, characters, 'p');
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + characters);
  const auto* name = reinterpret_cast<const sockaddr*>(&address);
  if (listening) {
    must(::bind(socket.get(), name, length) == 0, "bind");
    must(::listen(socket.get(), 8) == 0, "listen");
  } else {
    must(::connect(socket.get(), name, length) == 0, "connect");
  }
  return socket;
}

tacho::config::Config calling(const std::string& path) {
  auto config = watching(path);
  config.probes.poll.enabled = false;
  return config;
}

}  // namespace

TEST_CASE("IPv4 peers are the same over IPv6 sockets, and networks go by their names, the longest prefix first") {
  const Cgroup cgroup(playground() + "/" + unique_name());
  auto config = calling(cgroup.path());
  config.peers = {{.name = "near", .networks = {"127.0.0.0/8"}},
                  {.name = "odd", .networks = {"127.0.0.3/32", "fd00::/8"}},
                  {.name = "six", .networks = {"::1"}}};
  const bool named = GENERATE(false, true);
  CAPTURE(named);
  if (!named) {
    config.peers.clear();
  }
  Running tacho(config);
  const UniqueFd listener = listen_everywhere();
  const std::uint16_t port = port_of(listener);
  Child caller(cgroup.directory(), [port](Line& parent) {
    for (std::uint8_t last = 1; last <= 3; ++last) {
      ask(connect_mapped(last, port), kRequests, 10, 10);
    }
    ask(connect_tcp(port), kRequests, 10, 10);
    parent.tell();
    (void)parent.hear();
  });
  for (int connection = 0; connection < 4; ++connection) {
    serve(accept_from(listener), kRequests, 10, 10);
  }
  (void)caller.hear();
  const Page page = tacho.page();
  const std::string at = ":" + std::to_string(port);
  if (named) {
    CHECK(calls(page, "near" + at) == 3 * kRequests);
    CHECK(calls(page, "odd" + at) == kRequests);
  } else {
    CHECK(calls(page, "127.0.0.1" + at) == 2 * kRequests);
    CHECK(calls(page, "127.0.0.2" + at) == kRequests);
    CHECK(calls(page, "127.0.0.3" + at) == kRequests);
  }
  caller.tell();
  caller.finish();
}

TEST_CASE("peers beyond the limit are counted together as other, and told as such") {
  const Cgroup cgroup(playground() + "/" + unique_name());
  auto config = watching(cgroup.path());
  config.probes.poll.enabled = false;
  config.limits.max_peers = 2;
  Running tacho(config);
  std::vector<UniqueFd> dependencies;
  std::vector<std::uint16_t> ports;
  for (int i = 0; i < 4; ++i) {
    dependencies.push_back(listen_tcp());
    ports.push_back(port_of(dependencies.back()));
  }
  Child caller(cgroup.directory(), [&ports](Line& parent) {
    for (const std::uint16_t port : ports) {
      const UniqueFd connection = connect_tcp(port);
      ask(connection, kRequests, 10, 10);
    }
    parent.tell();
    (void)parent.hear();
  });
  for (const UniqueFd& dependency : dependencies) {
    serve(accept_from(dependency), kRequests, 10, 10);
  }
  (void)caller.hear();
  const Page page = tacho.page();
  CHECK(calls(page, "127.0.0.1:" + std::to_string(ports[0])) == kRequests);
  CHECK(calls(page, "127.0.0.1:" + std::to_string(ports[1])) == kRequests);
  CHECK(calls(page, "other") == 2 * kRequests);
  caller.tell();
  caller.finish();
}

TEST_CASE("peers with unix paths of every length have an entry each, and a scrape comes to its end") {
  constexpr std::array<std::size_t, 9> kLengths{1, 2, 40, 60, 64, 82, 100, 107, 108};
  const auto directory = std::filesystem::temp_directory_path() / ("tacho-peers-" + std::to_string(::getpid()));
  std::filesystem::create_directory(directory);
  const Cgroup cgroup(playground() + "/" + unique_name());
  Running tacho(calling(cgroup.path()));
  Child server("", [&](Line& parent) {
    must(::chdir(directory.c_str()) == 0, "chdir");
    std::vector<UniqueFd> listeners;
    for (const std::size_t length : kLengths) {
      listeners.push_back(unix_socket(length, true));
    }
    parent.tell();
    for (const UniqueFd& listener : listeners) {
      serve(UniqueFd(::accept(listener.get(), nullptr, nullptr)), kRequests, 10, 10);
    }
    (void)parent.hear();
  });
  (void)server.hear();
  Child caller(cgroup.directory(), [&](Line& parent) {
    must(::chdir(directory.c_str()) == 0, "chdir");
    for (const std::size_t length : kLengths) {
      ask(unix_socket(length, false), kRequests, 10, 10);
    }
    parent.tell();
    (void)parent.hear();
  });
  (void)caller.hear();
  for (int scrape = 0; scrape < 2; ++scrape) {
    const Page page = tacho.page();
    CHECK(page.value("tacho_map_entries", {{"map", "dependency_slots"}}) == kLengths.size());
    CHECK(page.count("tacho_dependency_calls_total", {{"target", "t"}}) == kLengths.size());
    for (const std::size_t length : kLengths) {
      CHECK(calls(page, "unix:" + std::string(length, 'p')) == kRequests);
    }
  }
  caller.tell();
  caller.finish();
  server.tell();
  server.finish();
  std::filesystem::remove_all(directory);
}

TEST_CASE("a walk over a map visits keys of any size once, and ends where keys are deleted meanwhile") {
  constexpr std::uint32_t kEntries = 23;
  using Key = std::array<std::uint32_t, 100>;
  const UniqueFd map(
      bpf_map_create(BPF_MAP_TYPE_HASH, "walked", sizeof(Key), sizeof(std::uint32_t), kEntries, nullptr));
  must(map.get() >= 0, "bpf_map_create");
  for (std::uint32_t i = 0; i < kEntries; ++i) {
    Key key{};
    key.fill(i);
    must(bpf_map_update_elem(map.get(), &key, &i, BPF_ANY) == 0, "bpf_map_update_elem");
  }
  const auto keys = tacho::kernel::keys_of<Key>(map.get());
  REQUIRE(keys);
  CHECK(std::set<Key>(keys->begin(), keys->end()).size() == kEntries);
  CHECK_FALSE(tacho::kernel::keys_of<std::uint64_t>(map.get()));
  CHECK_FALSE(tacho::kernel::keys_of<Key>(-1));

  std::uint64_t visits = 0;
  const auto visited = tacho::kernel::for_each_key(map.get(), [&](std::span<const std::byte> key) {
    ++visits;
    // The kernel begins anew after a key that is gone; one that comes back keeps the map from getting empty.
    const std::uint32_t value = 0;
    bpf_map_delete_elem(map.get(), key.data());
    bpf_map_update_elem(map.get(), key.data(), &value, BPF_ANY);
    bpf_map_delete_elem(map.get(), keys->front().data());
  });
  REQUIRE(visited);
  CHECK(*visited == visits);
  CHECK(visits <= kEntries);
}
