// Connections that are sped up: data goes from socket to socket past TCP (sockmap), whose positions in the stream stand
// still then.

#include <bpf/bpf.h>
#include <bpf/sockmap.skel.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <memory>
#include <string>
#include <thread>

#include "kernel/support/child.h"
#include "kernel/support/running.h"
#include "kernel/support/wire.h"

using tacho::UniqueFd;
using namespace tacho::kernel_test;
using namespace std::chrono_literals;

namespace {

constexpr int kBefore = 3;
constexpr int kRequests = 23;
constexpr auto kPause = 300ms;

struct Unload {
  void operator()(sockmap_bpf* object) const { sockmap_bpf__destroy(object); }
};

UniqueFd descriptor_of(const Child& process, std::uint64_t number) {
  const UniqueFd pid(static_cast<int>(::syscall(SYS_pidfd_open, process.pid(), 0)));
  UniqueFd descriptor(static_cast<int>(::syscall(SYS_pidfd_getfd, pid.get(), static_cast<int>(number), 0)));
  must(static_cast<bool>(descriptor), "pidfd_getfd");
  return descriptor;
}

/// Tells its connection's descriptor, and does `work` in two parts, each when it is told to.
void in_two_parts(const UniqueFd& connection, Line& parent,
                  void (*work)(const UniqueFd&, int, std::size_t, std::size_t)) {
  parent.tell(static_cast<std::uint64_t>(connection.get()));
  for (const int requests : {kBefore, kRequests}) {
    (void)parent.hear();
    work(connection, requests, 10, 20);
    parent.tell();
  }
  (void)parent.hear();
}

}  // namespace

TEST_CASE("requests that go from socket to socket past TCP count like others") {
  const Watched serving;
  const Watched asking;
  Child server(serving.directory(), [](Line& parent) {
    const UniqueFd listener = listen_tcp();
    parent.tell(port_of(listener));
    in_two_parts(accept_from(listener), parent, serve);
  });
  const auto port = static_cast<std::uint16_t>(server.hear());
  Child client(asking.directory(), [port](Line& parent) { in_two_parts(connect_tcp(port), parent, ask); });
  UniqueFd ends[]{descriptor_of(client, client.hear()), descriptor_of(server, server.hear())};
  const auto exchange = [&] {
    server.tell();
    client.tell();
    (void)server.hear();
    (void)client.hear();
  };
  exchange();

  const std::unique_ptr<sockmap_bpf, Unload> redirect(sockmap_bpf__open());
  must(redirect != nullptr, "open");
  redirect->rodata->server_port = port;
  if (sockmap_bpf__load(redirect.get()) != 0) {
    WARN("skipped: this kernel has no sockmaps (CONFIG_BPF_STREAM_PARSER)");
    return;
  }
  const int map = bpf_map__fd(redirect->maps.ends);
  must(::bpf_prog_attach(bpf_program__fd(redirect->progs.to_other_end), map, BPF_SK_MSG_VERDICT, 0) == 0, "attach");
  for (std::uint32_t i = 0; i < 2; ++i) {
    const int end = ends[i].get();
    must(::bpf_map_update_elem(map, &i, &end, BPF_ANY) == 0, "update");
  }
  for (UniqueFd& end : ends) {
    end.reset();
  }
  std::this_thread::sleep_for(kPause);
  exchange();

  const double pause = std::chrono::duration<double>(kPause).count();
  CHECK(serving.value("tacho_requests_total") == kBefore + kRequests);
  CHECK(serving.observations("tacho_request_duration_seconds") == kBefore + kRequests);
  CHECK(serving.sum("tacho_request_duration_seconds") < pause / 2);
  CHECK(serving.value("tacho_requests_in_flight") == 0);
  CHECK(serving.value("tacho_oneway_messages_total") == 0);
  const std::string peer = "127.0.0.1:" + std::to_string(port);
  CHECK(asking.value("tacho_dependency_calls_total", {{"peer", peer}}) == kBefore + kRequests);
  CHECK(asking.sum("tacho_dependency_duration_seconds", {{"peer", peer}}) < pause / 2);
  server.tell();
  client.tell();
  server.finish();
  client.finish();
  CHECK(shared().wait_for([&] { return serving.value("tacho_connections_active", {{"role", "server"}}) == 0; }));
  CHECK(serving.value("tacho_requests_unanswered_total") == 0);
}
