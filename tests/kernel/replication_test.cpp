// Replicas and standbys: what they say within the stream of changes is no request.

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "kernel/support/child.h"
#include "kernel/support/running.h"
#include "kernel/support/server.h"
#include "kernel/support/wire.h"

using tacho::UniqueFd;
using namespace tacho::kernel_test;
using namespace std::string_literals;

namespace {

constexpr int kChanges = 5;
const std::string kChange(90, 'w');
const std::string kPosition(39, 'd');

/// A query of PostgreSQL: type, length, text and its end.
std::string query(const std::string& text) {
  return "Q\0\0\0"s + static_cast<char>(text.size() + 5) + text + '\0';
}

}  // namespace

TEST_CASE("a replica's messages are no requests, however much it asks before the stream begins") {
  struct Case {
    std::string name;
    std::string first;
    std::string asks;
    int before;
    std::string begins;
  };
  const std::string start = query("START_REPLICATION SLOT \"archive\" PHYSICAL 0/3000000 TIMELINE 1");
  const std::vector<Case> cases = {
      {"redis", "*1\r\n$4\r\nPING\r\n", "*1\r\n$4\r\nPING\r\n", 1,
       "*3\r\n$8\r\nREPLCONF\r\n$14\r\nlistening-port\r\n$4\r\n6379\r\n"},
      {"a standby of PostgreSQL", std::string(40, 's'), query("IDENTIFY_SYSTEM"), 2, start},
      {"pg_receivewal with SCRAM and a slot", std::string(40, 's'), query("SHOW wal_segment_size"), 10, start},
  };
  for (const Case& each : cases) {
    CAPTURE(each.name);
    const Watched where;
    Child server = server_that(where.directory(), [&](const UniqueFd& connection, Line& parent) {
      receive_once(connection, each.first.size());
      send_once(connection, 30);
      for (int i = 1; i < each.before; ++i) {
        receive_once(connection, each.asks.size());
        send_once(connection, 30);
      }
      receive_once(connection, each.begins.size());
      for (int i = 0; i < kChanges; ++i) {
        send_once(connection, kChange.size());
        receive_once(connection, kPosition.size());
      }
      parent.tell();
    });
    const UniqueFd replica = connect_to(server);
    send_bytes(replica, each.first);
    receive_once(replica, 30);
    for (int i = 1; i < each.before; ++i) {
      send_bytes(replica, each.asks);
      receive_once(replica, 30);
    }
    send_bytes(replica, each.begins);
    for (int i = 0; i < kChanges; ++i) {
      receive_once(replica, kChange.size());
      send_bytes(replica, kPosition);
    }
    (void)server.hear();
    CHECK(where.value("tacho_requests_total") == each.before);
    CHECK(where.value("tacho_requests_in_flight") == 0);
    close_connection(server);
    finish(server);
  }
}
