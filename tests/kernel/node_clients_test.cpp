// Requests of the node itself, where a target leaves them out.

#include <catch2/catch.hpp>
#include <string>

#include "kernel/support/cgroup.h"
#include "kernel/support/child.h"
#include "kernel/support/running.h"
#include "kernel/support/server.h"
#include "kernel/support/wire.h"

using tacho::UniqueFd;
using tacho::config::Clients;
using namespace tacho::kernel_test;

namespace {

constexpr int kOfNode = 17;
constexpr int kOfUser = 23;

/// As runtimes name containers.
std::string container() {
  const std::string name = unique_name();
  std::string id(64, 'a');
  for (std::size_t i = 0; i < name.size() && i < id.size(); ++i) {
    id[i] = "0123456789abcdef"[static_cast<unsigned char>(name[i]) % 16];
  }
  return playground() + "/" + id;
}

/// Somebody in a cgroup asks so many times, on one connection.
void ask_from(const Cgroup& cgroup, const Server& server, int requests) {
  Child client(cgroup.directory(), [&server, requests](Line&) {
    const UniqueFd connection = connect_tcp(server.port());
    ask(connection, requests, Server::kRequest, Server::kReply);
  });
  server.child().tell(static_cast<std::uint64_t>(requests));
  (void)server.child().hear();
  client.finish();
}

}  // namespace

TEST_CASE("requests of the node's own processes are counted apart where a target leaves them out") {
  const Cgroup served(container());
  const Cgroup user(container() + "-user");
  const Cgroup kubelet(playground() + "/" + unique_name() + ".service");
  auto config = watching(served.path());
  const bool leaves_out = GENERATE(true, false);
  CAPTURE(leaves_out);
  config.targets.front().exclude_clients = leaves_out ? Clients::node : Clients::none;
  Running tacho(config);
  Server server(served.directory());
  ask_from(kubelet, server, kOfNode);
  ask_from(user, server, kOfUser);
  server.ask(kOfNode);  // of this program, which is in no container either
  {
    // Its connection ends without an answer.
    const UniqueFd probe = connect_tcp(server.port());
    server.child().tell(1);
    send_once(probe, Server::kRequest);
    receive_once(probe, Server::kReply);
  }
  (void)server.child().hear();
  const int left_out = leaves_out ? 2 * kOfNode + 1 : 0;
  const int counted = 2 * kOfNode + 1 + kOfUser - left_out;
  const auto page = tacho.page();
  const auto value = [&page](const std::string& name, Labels labels = {}) {
    labels["target"] = "t";
    return page.value(name, labels);
  };
  CHECK(value("tacho_node_requests_total", {{"role", "server"}}) == left_out);
  CHECK(value("tacho_node_requests_total", {{"role", "client"}}) == 0);
  CHECK(value("tacho_requests_total") == counted);
  CHECK(value("tacho_request_duration_seconds_count") == counted);
  CHECK(value("tacho_socket_operations_total", {{"direction", "send"}}) == counted);
  CHECK(value("tacho_connections_total", {{"role", "server"}}) == (leaves_out ? 1 : 4));
  CHECK(value("tacho_connections_active", {{"role", "server"}}) == 0);
  CHECK(value("tacho_requests_in_flight") == 0);
  CHECK(value("tacho_requests_unanswered_total") == 0);
  server.finish();
}

TEST_CASE("a service that leaves the node's requests out makes calls as before") {
  const Cgroup service(playground() + "/" + unique_name() + ".service");
  const Cgroup other(playground() + "/" + unique_name() + ".service");
  auto config = watching(service.path());
  config.targets.front().exclude_clients = Clients::node;
  Running tacho(config);
  Server server(other.directory());
  ask_from(service, server, kOfUser);
  const auto page = tacho.page();
  CHECK(page.value("tacho_dependency_calls_total",
                   {{"target", "t"}, {"peer", "127.0.0.1:" + std::to_string(server.port())}}) == kOfUser);
  CHECK(page.value("tacho_node_requests_total", {{"target", "t"}, {"role", "client"}}) == 0);
  server.finish();
}
