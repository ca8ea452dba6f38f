#include "kernel/support/habits.h"

#include <catch2/catch.hpp>
#include <cstdint>

#include "kernel/support/child.h"
#include "kernel/support/running.h"
#include "kernel/support/wire.h"

namespace tacho::kernel_test {
namespace {

constexpr std::size_t kReply = 100;

std::string together(const Turn& turn) {
  std::string all;
  for (const std::string& piece : turn) {
    all += piece;
  }
  return all;
}

}  // namespace

void check_habit(const Habit& habit) {
  CAPTURE(habit.name);
  const Watched where;
  Child server(where.directory(), [&habit](Line& parent) {
    const UniqueFd listener = listen_tcp();
    parent.tell(port_of(listener));
    for (int i = 0; i < habit.connections; ++i) {
      const UniqueFd connection = accept_from(listener);
      for (const Turn& turn : habit.turns) {
        for (const std::string& piece : turn) {
          receive_once(connection, piece.size());
          if (habit.apart) {
            parent.tell();
          }
        }
        send_once(connection, kReply);
      }
    }
    parent.tell();
    (void)parent.hear();
  });
  const auto port = static_cast<std::uint16_t>(server.hear());
  for (int i = 0; i < habit.connections; ++i) {
    const UniqueFd client = connect_tcp(port);
    for (const Turn& turn : habit.turns) {
      for (const std::string& data : habit.apart ? turn : Turn{together(turn)}) {
        send_bytes(client, data);
        if (habit.apart) {
          (void)server.hear();
        }
      }
      receive_once(client, kReply);
    }
  }
  (void)server.hear();
  // Conditions need two samples, which are taken once a second.
  CHECK(shared().wait_for([&] { return where.value("tacho_target_condition", {{"condition", "no_poll"}}) == 1; }));
  const auto multiplexed = [&] { return where.value("tacho_target_condition", {{"condition", "multiplexed"}}); };
  if (habit.told) {
    CHECK(shared().wait_for([&] { return multiplexed() == 1; }));
  } else {
    CHECK(multiplexed() == 0);
  }
  // What is found in one read is told of the turn alone.
  if (!habit.apart) {
    CHECK(where.value("tacho_multiplexed_connections_total") == 0);
  }
  server.tell();
  server.finish();
}

std::string times(int count, std::string_view text) {
  std::string all;
  for (int i = 0; i < count; ++i) {
    all += text;
  }
  return all;
}

std::string number(char value) {
  return std::string(3, '\0') + value;
}

}  // namespace tacho::kernel_test
