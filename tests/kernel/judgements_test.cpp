// What is said about a target beside its counters: saturation, its error, conditions.
#include <netinet/in.h>
#include <sys/socket.h>

#include <catch2/catch.hpp>
#include <fstream>
#include <string>

#include "kernel/support/cgroup.h"
#include "kernel/support/page.h"
#include "kernel/support/polls.h"
#include "kernel/support/running.h"
#include "kernel/support/server.h"
#include "kernel/support/wire.h"

using tacho::UniqueFd;
using namespace tacho::kernel_test;

namespace {

constexpr int kRequests = 23;

/// A tacho that watches one cgroup, in which a server has answered some requests, with a probe or two switched off.
Page page_without(bool sockets, bool polls, bool threads) {
  const Cgroup cgroup(playground() + "/" + unique_name());
  auto config = watching(cgroup.path());
  config.probes.socket.enabled = sockets;
  config.probes.poll.enabled = polls;
  config.probes.sched.enabled = threads;
  Running tacho(config);
  Server server(cgroup.directory());
  server.ask(kRequests);
  server.finish();
  const Labels lost{{"condition", "lost_events"}};
  REQUIRE(tacho.wait_for([&] { return tacho.page().count("tacho_target_condition", lost) == 1; }));
  // Two samples, of which the first is that of the beginning.
  tacho.wait_for([&] { return tacho.page().count("tacho_saturation_ratio") == 1; }, std::chrono::milliseconds(2'500));
  return tacho.page();
}

std::size_t told(const Page& page, const std::string& condition) {
  return page.count("tacho_target_condition", {{"condition", condition}});
}

UniqueFd bound_datagram_socket() {
  UniqueFd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  must(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0, "bind");
  return socket;
}

}  // namespace

TEST_CASE("an idle target has a saturation, which is small, and a standard error") {
  const Watched where;
  const Labels labels{{"cgroup", where.path()}};
  REQUIRE(shared().wait_for([&] {
    const Page page = shared().page();
    return page.count("tacho_saturation_ratio_error", labels) == 1 &&
           page.value("tacho_saturation_ratio_error", labels) < 0.2;
  }));
  const Page page = shared().page();
  CHECK(page.value("tacho_saturation_ratio", labels) == 0);
  CHECK(page.value("tacho_saturation_ratio_error", labels) > 0.02);
}

TEST_CASE("without the poll probe nothing is said about polls, and saturation is there") {
  const Page page = page_without(true, false, true);
  CHECK(told(page, "no_poll") == 0);
  CHECK(told(page, "busy_polling") == 0);
  CHECK(told(page, "few_samples") == 1);
  CHECK(told(page, "multiplexed") == 1);
  CHECK(page.count("tacho_saturation_ratio") == 1);
}

TEST_CASE("without the socket probe nothing is said about requests, and saturation is that of the CPUs") {
  const Page page = page_without(false, true, true);
  CHECK(told(page, "no_poll") == 0);
  CHECK(told(page, "few_samples") == 0);
  CHECK(told(page, "multiplexed") == 0);
  // The scheduler does not tell of polls that do not wait.
  CHECK(told(page, "busy_polling") == (only_sleeps(page) ? 0 : 1));
  CHECK(page.count("tacho_saturation_ratio") == 1);
}

TEST_CASE("with neither sockets nor threads seen there is no saturation, not one of 0") {
  const Page page = page_without(false, true, false);
  CHECK(page.count("tacho_saturation_ratio") == 0);
  CHECK(page.count("tacho_saturation_ratio_error") == 0);
}

TEST_CASE("a datagram server that is spoken to in QUIC is multiplexed, one that is not is none") {
  // The long header of version 1 and 2 (RFC 9000, 17.2; RFC 9369), of version negotiation, and a DNS question.
  struct Case {
    std::string beginning;
    bool quic;
  };
  const auto bytes = [](std::initializer_list<unsigned char> list) { return std::string(list.begin(), list.end()); };
  const Case one =
      GENERATE_COPY(Case{bytes({0xc3, 0, 0, 0, 1, 8}), true}, Case{bytes({0xd3, 0x6b, 0x33, 0x43, 0xcf, 8}), true},
                    Case{bytes({0xc3, 0, 0, 0, 0, 8}), false}, Case{bytes({0x12, 0x34, 1, 0, 0, 1}), false});
  CAPTURE(one.beginning);
  const Watched where;
  Child server(where.directory(), [](Line& parent) {
    const UniqueFd socket = bound_datagram_socket();
    parent.tell(port_of(socket));
    for (int i = 0; i < kRequests; ++i) {
      sockaddr_in from{};
      socklen_t length = sizeof(from);
      std::string data(100, '\0');
      auto* address = reinterpret_cast<sockaddr*>(&from);
      must(::recvfrom(socket.get(), data.data(), data.size(), 0, address, &length) == 60, "recvfrom");
      must(::sendto(socket.get(), data.data(), 30, 0, address, length) == 30, "sendto");
    }
    parent.tell();
    (void)parent.hear();
  });
  auto to = sockaddr_in{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<std::uint16_t>(server.hear()));
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const UniqueFd client = bound_datagram_socket();
  must(::connect(client.get(), reinterpret_cast<const sockaddr*>(&to), sizeof(to)) == 0, "connect");
  std::string datagram(60, 'x');
  datagram.replace(0, one.beginning.size(), one.beginning);
  for (int i = 0; i < kRequests; ++i) {
    must(::send(client.get(), datagram.data(), datagram.size(), 0) == 60, "send");
    receive_once(client, 30);
  }
  (void)server.hear();
  CHECK(where.value("tacho_requests_total") == kRequests);
  const auto multiplexed = [&] { return where.value("tacho_target_condition", {{"condition", "multiplexed"}}); };
  if (one.quic) {
    CHECK(shared().wait_for([&] { return multiplexed() == 1; }));
  } else {
    REQUIRE(shared().wait_for([&] { return where.value("tacho_observed_rps") > 0; }));
    CHECK(multiplexed() == 0);
  }
  server.tell();
  server.finish();
}

TEST_CASE("a frozen cgroup is told, until it is thawed (N9)") {
  const Watched where;
  Server server(where.directory());
  const auto frozen = [&where](double state) {
    return shared().wait_for([&] { return where.value("tacho_target_condition", {{"condition", "frozen"}}) == state; });
  };
  const auto freeze = [&where](int state) { std::ofstream(where.directory() + "/cgroup.freeze") << state; };
  CHECK(frozen(0));
  freeze(1);
  CHECK(frozen(1));
  freeze(0);
  CHECK(frozen(0));
  server.ask(kRequests);
  server.finish();
}
