// Requests of HTTP/2 connections, by the headers of their frames (RFC 9113).

#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "kernel/support/cgroup.h"
#include "kernel/support/child.h"
#include "kernel/support/frames.h"
#include "kernel/support/place.h"
#include "kernel/support/running.h"
#include "kernel/support/wire.h"

using tacho::UniqueFd;
using namespace tacho::kernel_test;
using namespace std::chrono_literals;
using namespace std::string_literals;

namespace {

/// A way to receive: as many bytes as there are, in one call.
using Receive = std::function<ssize_t(int socket, std::string& buffer, std::size_t wanted)>;

/// Receives `total` bytes, at most `at_once` a call.
void receive_all(const UniqueFd& socket, std::size_t total, std::size_t at_once, const Receive& receive) {
  std::string buffer(total, '\0');
  while (total > 0) {
    const ssize_t got = receive(socket.get(), buffer, std::min(total, at_once));
    must(got > 0, "receive");
    total -= static_cast<std::size_t>(got);
  }
}

ssize_t by_recv(int socket, std::string& buffer, std::size_t wanted) {
  return ::recv(socket, buffer.data(), wanted, 0);
}

ssize_t by_readv(int socket, std::string& buffer, std::size_t wanted) {
  std::vector<iovec> parts;
  for (std::size_t at = 0; at < wanted && parts.size() < 16; at += 5) {
    parts.push_back({buffer.data() + at, std::min<std::size_t>(5, wanted - at)});
  }
  return ::readv(socket, parts.data(), static_cast<int>(parts.size()));
}

ssize_t by_recvmsg(int socket, std::string& buffer, std::size_t wanted) {
  std::array<iovec, 2> parts{iovec{buffer.data(), wanted / 2}, iovec{buffer.data() + wanted / 2, wanted - wanted / 2}};
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = parts.size();
  return ::recvmsg(socket, &message, 0);
}

void send_by_writev(const UniqueFd& socket, std::string text, std::size_t part) {
  std::vector<iovec> parts;
  for (std::size_t at = 0; at < text.size(); at += part) {
    parts.push_back({text.data() + at, std::min(part, text.size() - at)});
  }
  must(::writev(socket.get(), parts.data(), static_cast<int>(parts.size())) == static_cast<ssize_t>(text.size()),
       "writev");
}

using tacho::config::Http2;

tacho::config::Config following(const std::string& path, Http2 http2 = Http2::on) {
  auto config = watching(path);
  config.targets.front().http2 = http2;
  config.probes.poll.enabled = false;
  return config;
}

double lost(const Page& page) {
  return page.value("tacho_lost_events_total", {{"probe", "socket"}, {"reason", "http2_step"}}) +
         page.value("tacho_lost_events_total", {{"probe", "socket"}, {"reason", "http2_stream"}});
}

}  // namespace

TEST_CASE("requests of an HTTP/2 connection are streams, however reads and writes cut the frames") {
  struct Way {
    std::size_t at_once;
    Receive receive;
    std::size_t part;
  };
  const auto [at_once, receive, part] = GENERATE(values<Way>(
      {{10'000, by_recv, 200}, {4, by_recv, 4}, {7, by_recv, 9}, {70, by_readv, 11}, {64, by_recvmsg, 30}}));
  CAPTURE(at_once, part);
  const auto http2 = GENERATE(Http2::on, Http2::automatic);
  const Cgroup cgroup(playground() + "/" + unique_name());
  Running tacho(following(cgroup.path(), http2));
  // Three requests, the first one with a body; an empty stream of the server's own; a request that is cancelled.
  const std::string asked = kPreface + frame(kSettings, 0, 18) + frame(kHeaders, 1, 30) + frame(kData, 1, 100) +
                            frame(kHeaders, 3, 20) + frame(kHeaders, 5, 0) + frame(kHeaders, 7, 12) +
                            frame(kReset, 7, 4) + frame(kHeaders, 1, 3);
  const std::string replied = frame(kSettings, 0, 0) + frame(kHeaders, 3, 10) + frame(kData, 3, 20) +
                              frame(kHeaders, 2, 5) + frame(kHeaders, 3, 5) + frame(kHeaders, 1, 10);
  Child server(cgroup.directory(), [&](Line& parent) {
    const UniqueFd listener = listen_tcp();
    parent.tell(port_of(listener));
    const UniqueFd connection = accept_from(listener);
    receive_all(connection, asked.size(), at_once, receive);
    send_by_writev(connection, replied, part);
    parent.tell();
    (void)parent.hear();
  });
  const UniqueFd client = connect_tcp(static_cast<std::uint16_t>(server.hear()));
  send_bytes(client, asked);
  receive_all(client, replied.size(), replied.size(), by_recv);
  (void)server.hear();
  const Page open = tacho.page();
  CHECK(open.value("tacho_requests_total") == 2);
  CHECK(open.value("tacho_request_queue_seconds_count") == 2);
  CHECK(open.value("tacho_requests_in_flight") == 1);
  CHECK(open.value("tacho_requests_unanswered_total") == 1);
  CHECK(open.value("tacho_request_serving_total", {{"mode", "unknown"}}) == 2);
  CHECK(lost(open) == 0);
  server.tell();
  server.finish();
  CHECK(tacho.wait_for([&] { return tacho.page().value("tacho_requests_unanswered_total") == 2; }));
  CHECK(tacho.page().value("tacho_requests_in_flight") == 0);
}

TEST_CASE("a request of HTTP/2 arrives with the last of its body that the server has waited for") {
  constexpr auto kPause = 30ms;
  constexpr int kUploads = 5;
  constexpr int kFrames = 4;
  constexpr std::size_t kPart = 1000;
  // Who is slow: the client, between the halves of each frame, or the server, between its reads of what lies there.
  const bool slow_client = GENERATE(true, false);
  CAPTURE(slow_client);
  const Cgroup cgroup(playground() + "/" + unique_name());
  Running tacho(following(cgroup.path()));
  const auto parts_of = [](int upload) {
    const auto stream = static_cast<std::uint32_t>(1 + 2 * upload);
    std::vector<std::string> parts;
    for (int i = 0; i < kFrames; ++i) {
      const std::string whole = (i == 0 ? frame(kHeaders, stream, 20) : "") + frame(kData, stream, kPart);
      parts.push_back(whole.substr(0, whole.size() - kPart / 2));
      parts.push_back(whole.substr(whole.size() - kPart / 2));
    }
    return parts;
  };
  Child server(cgroup.directory(), [&](Line& parent) {
    const UniqueFd listener = listen_tcp();
    parent.tell(port_of(listener));
    const UniqueFd connection = accept_from(listener);
    const std::string begin = kPreface + frame(kSettings, 0, 0);
    receive_all(connection, begin.size(), begin.size(), by_recv);
    for (int i = 0; i < kUploads; ++i) {
      for (const std::string& part : parts_of(i)) {
        receive_all(connection, part.size(), part.size(), by_recv);
        std::this_thread::sleep_for(slow_client ? 0ms : kPause);
      }
      send_bytes(connection, frame(kHeaders, static_cast<std::uint32_t>(1 + 2 * i), 10));
    }
    parent.tell();
    (void)parent.hear();
  });
  const UniqueFd client = connect_tcp(static_cast<std::uint16_t>(server.hear()));
  send_bytes(client, kPreface + frame(kSettings, 0, 0));
  std::chrono::duration<double> since_last{};
  std::chrono::duration<double> until_last{};
  for (int i = 0; i < kUploads; ++i) {
    std::string unsent;
    const auto begun = std::chrono::steady_clock::now();
    auto last = begun;
    for (const std::string& part : parts_of(i)) {
      unsent += part;
      if (slow_client) {
        std::this_thread::sleep_for(kPause);
        last = std::chrono::steady_clock::now();
        send_bytes(client, std::exchange(unsent, ""));
      }
    }
    send_bytes(client, unsent);
    receive_all(client, 19, 19, by_recv);
    since_last += std::chrono::steady_clock::now() - last;
    until_last += last - begun;
  }
  (void)server.hear();
  const Page page = tacho.page();
  CHECK(page.value("tacho_requests_total") == kUploads);
  CHECK(lost(page) == 0);
  const double reads = kUploads * 2 * kFrames * std::chrono::duration<double>(kPause).count();
  CHECK(page.value("tacho_request_duration_seconds_sum") >= (slow_client ? 0 : reads));
  CHECK(page.value("tacho_request_duration_seconds_sum") <= since_last.count());
  CHECK(page.value("tacho_request_queue_seconds_sum") <= page.value("tacho_request_duration_seconds_sum"));
  // The first pause is before there is anything of the upload; `until_last` has it. A server that was not on a CPU for
  // a whole pause has not waited for what came at its end.
  const double received = page.value("tacho_request_receive_seconds_sum");
  const double pauses = kUploads * (2 * kFrames - 1) * std::chrono::duration<double>(kPause).count();
  CHECK(page.value("tacho_request_receive_seconds_count") == (slow_client ? kUploads : 0));
  CHECK(received >= (slow_client ? pauses / 2 : 0));
  CHECK(received <= (slow_client ? until_last.count() : 0));
  server.tell();
  server.finish();
}

TEST_CASE("what is not HTTP/2 is counted by turns on a target that would follow it, and told when it breaks off") {
  const Cgroup cgroup(playground() + "/" + unique_name());
  Running tacho(following(cgroup.path()));
  Child server(cgroup.directory(), [](Line& parent) {
    const UniqueFd listener = listen_tcp();
    parent.tell(port_of(listener));
    serve(accept_from(listener), 23, 10, 10);
    const UniqueFd broken = accept_from(listener);
    receive_once(broken, kPreface.size() + 9);
    receive_once(broken, 100);
    parent.tell();
    (void)parent.hear();
  });
  const auto port = static_cast<std::uint16_t>(server.hear());
  const UniqueFd plain = connect_tcp(port);
  ask(plain, 23, 10, 10);
  const UniqueFd broken = connect_tcp(port);
  send_bytes(broken, kPreface + frame(kSettings, 0, 0));
  send_bytes(broken, std::string(100, '\xff'));
  (void)server.hear();
  const Page page = tacho.page();
  CHECK(page.value("tacho_requests_total") == 23);
  CHECK(page.value("tacho_lost_events_total", {{"probe", "socket"}, {"reason", "http2_step"}}) == 1);
  server.tell();
  server.finish();
}

TEST_CASE("without being asked, HTTP/2 after an upgrade is counted by streams, and the upgraded request once") {
  const Cgroup cgroup(playground() + "/" + unique_name());
  Running tacho(watching(cgroup.path()));
  const std::string upgrade = "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n";
  const std::string first =
      "HTTP/1.1 101 Switching Protocols\r\n\r\n" + frame(kSettings, 0, 0) + frame(kHeaders, 1, 10);
  const std::string second = frame(kData, 1, 10) + frame(kHeaders, 3, 10);
  const std::string asked = kPreface + frame(kSettings, 0, 0) + frame(kHeaders, 3, 20) + frame(kHeaders, 5, 20);
  Child server(cgroup.directory(), [&](Line& parent) {
    const UniqueFd listener = listen_tcp();
    parent.tell(port_of(listener));
    const UniqueFd connection = accept_from(listener);
    receive_once(connection, upgrade.size());
    send_bytes(connection, first);
    receive_all(connection, asked.size(), asked.size(), by_recv);
    send_bytes(connection, second);
    send_bytes(connection, frame(kHeaders, 5, 10));
    parent.tell();
    (void)parent.hear();
  });
  const UniqueFd client = connect_tcp(static_cast<std::uint16_t>(server.hear()));
  send_bytes(client, upgrade);
  receive_all(client, first.size(), first.size(), by_recv);
  send_bytes(client, asked);
  (void)server.hear();
  const Page page = tacho.page();
  CHECK(page.value("tacho_requests_total") == 3);
  CHECK(page.value("tacho_requests_in_flight") == 0);
  server.tell();
  server.finish();
  CHECK(tacho.page().value("tacho_requests_unanswered_total") == 0);
}

TEST_CASE("HTTP/2 behind a proxy's header is counted by streams, however the header is read") {
  const Cgroup cgroup(playground() + "/" + unique_name());
  Running tacho(watching(cgroup.path()));
  const std::string header = "PROXY TCP4 192.0.2.7 192.0.2.8 51234 443\r\n";
  const std::string asked = kPreface + frame(kSettings, 0, 0) + frame(kHeaders, 1, 20) + frame(kHeaders, 3, 20);
  Child server(cgroup.directory(), [&](Line& parent) {
    const UniqueFd listener = listen_tcp();
    parent.tell(port_of(listener));
    for (const std::size_t piece : {header.size() + asked.size(), header.size(), std::size_t{1}}) {
      const UniqueFd connection = accept_from(listener);
      for (std::size_t read = 0; read < header.size() && piece <= header.size(); read += piece) {
        receive_once(connection, piece);
      }
      receive_once(connection, piece > header.size() ? piece : asked.size());
      send_bytes(connection, frame(kHeaders, 1, 10) + frame(kHeaders, 3, 10));
      parent.tell();
      (void)parent.hear();
    }
  });
  const auto port = static_cast<std::uint16_t>(server.hear());
  for (const int requests : {2, 4, 6}) {
    const UniqueFd client = connect_tcp(port);
    send_bytes(client, header + asked);
    receive_all(client, 38, 38, by_recv);
    (void)server.hear();
    CHECK(tacho.page().value("tacho_requests_total") == requests);
    CHECK(tacho.page().value("tacho_requests_in_flight") == 0);
    server.tell();
  }
  server.finish();
  CHECK(tacho.page().value("tacho_requests_unanswered_total") == 0);
}

TEST_CASE("HTTP/2 is counted by streams in whatever pieces its preface is read, and however early settings are sent") {
  enum class Settings : std::uint8_t { late, behind_header, within_preface };
  const auto http2 = GENERATE(Http2::on, Http2::automatic);
  const Cgroup cgroup(playground() + "/" + unique_name());
  Running tacho(following(cgroup.path(), http2));
  struct Way {
    std::string header;
    std::size_t header_piece;
    std::size_t piece;
    Settings settings;
  };
  const std::string line = "PROXY TCP4 192.0.2.7 192.0.2.8 51234 443\r\n";
  const std::string signed_header = "\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c"s + std::string(12, '\x16');
  std::vector<Way> ways;
  for (const std::string& header : {""s, line, signed_header}) {
    for (const std::size_t header_piece : {std::size_t{1}, std::size_t{100}}) {
      for (const std::size_t piece : {1UL, 2UL, 3UL, 7UL, 100UL}) {
        for (const Settings settings : {Settings::late, Settings::behind_header, Settings::within_preface}) {
          ways.push_back({header, header_piece, piece, settings});
        }
      }
    }
  }
  const std::string asked = kPreface + frame(kSettings, 0, 0) + frame(kHeaders, 1, 20) + frame(kHeaders, 3, 20);
  const std::string settings = "\0\0\x12\4\0\0\0\0\0"s + std::string(18, 's');
  const std::string replied = frame(kHeaders, 1, 10) + frame(kHeaders, 3, 10);
  Child server(cgroup.directory(), [&](Line& parent) {
    const UniqueFd listener = listen_tcp();
    parent.tell(port_of(listener));
    for (const Way& way : ways) {
      const UniqueFd connection = accept_from(listener);
      const auto send_at = [&](Settings when) {
        if (way.settings == when) {
          send_bytes(connection, settings);
        }
      };
      receive_all(connection, way.header.size(), way.header_piece, by_recv);
      send_at(Settings::behind_header);
      receive_all(connection, 3, std::min(way.piece, std::size_t{3}), by_recv);
      send_at(Settings::within_preface);
      receive_all(connection, asked.size() - 3, way.piece, by_recv);
      send_at(Settings::late);
      send_bytes(connection, replied);
      parent.tell();
      (void)parent.hear();
    }
  });
  const auto port = static_cast<std::uint16_t>(server.hear());
  int requests = 0;
  for (const Way& way : ways) {
    CAPTURE(way.header, way.header_piece, way.piece, static_cast<int>(way.settings));
    const UniqueFd client = connect_tcp(port);
    send_bytes(client, way.header + asked);
    receive_all(client, settings.size() + replied.size(), 100, by_recv);
    (void)server.hear();
    requests += 2;
    const Page page = tacho.page();
    CHECK(page.value("tacho_requests_total") == requests);
    CHECK(page.value("tacho_requests_in_flight") == 0);
    server.tell();
  }
  server.finish();
  CHECK(tacho.page().value("tacho_requests_unanswered_total") == 0);
  CHECK(lost(tacho.page()) == 0);
}

TEST_CASE("streams of HTTP/2 that are open when a unix connection ends are not in flight, those before count") {
  const Cgroup cgroup(playground() + "/" + unique_name());
  Running tacho(watching(cgroup.path()));
  const std::string asked = kPreface + frame(kSettings, 0, 0) + frame(kHeaders, 1, 20) + frame(kHeaders, 3, 20) +
                            frame(kHeaders, 5, 20) + frame(kHeaders, 7, 20) + frame(kReset, 7, 4);
  const std::string replied = frame(kSettings, 0, 0) + frame(kHeaders, 1, 10) + frame(kHeaders, 3, 10);
  const Place place(Place::Kind::unix_stream);
  Child server = server_at(place, cgroup.directory(), [&](const UniqueFd& connection, Line&) {
    receive_all(connection, asked.size(), asked.size(), by_recv);
    send_bytes(connection, replied);
  });
  {
    const UniqueFd client = connect_to(server, place);
    send_bytes(client, asked);
    receive_all(client, replied.size(), replied.size(), by_recv);
  }
  (void)server.hear();
  server.tell();
  (void)server.hear();
  const Page page = tacho.page();
  CHECK(page.value("tacho_requests_total") == 2);
  CHECK(page.value("tacho_requests_unanswered_total") == 1);
  CHECK(page.value("tacho_requests_in_flight") == 0);
  server.tell();
  server.finish();
}

namespace {

constexpr std::uint32_t kPairs = 23;
const std::string kBegun = kPreface + frame(kSettings, 0, 0) + frame(kHeaders, 1, 20);

/// A server in one cgroup that begins to serve a connection and, when it is told, goes on in the other one.
Child serve_in_both(const std::string& first, const std::string& second) {
  return Child(first, [&](Line& parent) {
    const UniqueFd listener = listen_tcp();
    parent.tell(port_of(listener));
    const UniqueFd connection = accept_from(listener);
    receive_all(connection, kBegun.size(), kBegun.size(), by_recv);
    send_bytes(connection, frame(kSettings, 0, 0) + frame(kHeaders, 1, 10));
    (void)parent.hear();
    move_to(second, ::getpid());
    parent.tell();
    for (std::uint32_t i = 0; i < kPairs; ++i) {
      const std::uint32_t stream = 3 + 4 * i;
      receive_all(connection, 58, 58, by_recv);
      send_bytes(connection, frame(kHeaders, stream + 2, 10) + frame(kHeaders, stream, 10));
    }
    parent.tell();
    (void)parent.hear();
  });
}

/// The connection's first request; then the server has moved.
UniqueFd begin_with(Child& server) {
  UniqueFd client = connect_tcp(static_cast<std::uint16_t>(server.hear()));
  send_bytes(client, kBegun);
  receive_all(client, 28, 28, by_recv);
  server.tell();
  (void)server.hear();
  return client;
}

/// Two requests at a time.
void go_on(const UniqueFd& client, Child& server) {
  for (std::uint32_t i = 0; i < kPairs; ++i) {
    send_bytes(client, frame(kHeaders, 3 + 4 * i, 20) + frame(kHeaders, 5 + 4 * i, 20));
    receive_all(client, 38, 38, by_recv);
  }
  (void)server.hear();
}

}  // namespace

TEST_CASE("an HTTP/2 connection that goes to another target is counted by streams there, too") {
  const Watched first;
  const Watched second;
  Child server = serve_in_both(first.directory(), second.directory());
  go_on(begin_with(server), server);
  CHECK(first.value("tacho_requests_total") == 1);
  CHECK(second.value("tacho_requests_total") == 2 * kPairs);
  CHECK(second.value("tacho_requests_in_flight") == 0);
  server.tell();
  server.finish();
}

TEST_CASE("an HTTP/2 connection is counted by streams though another target has its old one's place") {
  const std::string name = playground() + "/" + unique_name();
  auto config = watching(name + "*");
  config.limits.max_targets = 2;
  config.probes.poll.enabled = false;
  auto first = std::make_unique<Cgroup>(name + "a");
  const Cgroup second(name + "b");
  Running tacho(config);
  const auto requests = [&tacho](const Cgroup& cgroup) {
    return tacho.page().value("tacho_requests_total", {{"cgroup", cgroup.path()}});
  };
  Child server = serve_in_both(first->directory(), second.directory());
  const UniqueFd client = begin_with(server);
  CHECK(requests(*first) == 1);
  first.reset();
  const Cgroup third(name + "c");
  REQUIRE(tacho.wait_for([&] { return tacho.watches({{"cgroup", third.path()}}); }));
  go_on(client, server);
  CHECK(requests(second) == 2 * kPairs);
  CHECK(requests(third) == 0);
  server.tell();
  server.finish();
}

// Its name keeps it where streams cannot be followed (tests/matrix/rows.py): there it is the same.
TEST_CASE("where streams are not to be followed, turns count and the preface says that they are too few") {
  const Cgroup cgroup(playground() + "/" + unique_name());
  Running tacho(following(cgroup.path(), Http2::off));
  const std::string asked = kPreface + frame(kSettings, 0, 0) + frame(kHeaders, 1, 20) + frame(kHeaders, 3, 20);
  Child server(cgroup.directory(), [&](Line& parent) {
    const UniqueFd listener = listen_tcp();
    parent.tell(port_of(listener));
    for (int i = 0; i < 23; ++i) {
      const UniqueFd connection = accept_from(listener);
      receive_once(connection, asked.size());
      send_bytes(connection, frame(kHeaders, 1, 10) + frame(kHeaders, 3, 10));
    }
    parent.tell();
    (void)parent.hear();
  });
  const auto port = static_cast<std::uint16_t>(server.hear());
  for (int i = 0; i < 23; ++i) {
    const UniqueFd client = connect_tcp(port);
    send_bytes(client, asked);
    receive_all(client, 38, 38, by_recv);
  }
  (void)server.hear();
  CHECK(tacho.page().value("tacho_requests_total") == 23);
  CHECK(tacho.wait_for(
      [&] { return tacho.page().value("tacho_target_condition", {{"condition", "multiplexed"}}) == 1; }));
  server.tell();
  server.finish();
}
