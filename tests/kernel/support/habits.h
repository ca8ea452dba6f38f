#pragma once

#include <string>
#include <string_view>
#include <vector>

// Clients that send several requests at a time, or seem to.

namespace tacho::kernel_test {

/// What a client sends until it is answered; the server reads it in these pieces.
using Turn = std::vector<std::string>;

struct Habit {
  std::string name;
  std::vector<Turn> turns;  ///< of each connection
  bool told;
  bool apart = false;  ///< each piece is sent when the one before has been read
  int connections = 23;
};

/// Clients with a habit, one connection after the other; whether the condition holds is the same on each.
void check_habit(const Habit& habit);

std::string times(int count, std::string_view text);

/// A number in four bytes, the most significant one first.
std::string number(char value);

}  // namespace tacho::kernel_test
