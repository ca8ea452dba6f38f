// Lives connections as seeds say, and compares what tacho counts with what the model says.
//
//   fuzz_lives [--seeds FIRST COUNT] [--seconds N] [--whole] [FILE…]
//
// Files are lives, as they are printed; --whole prints a life that came out otherwise as it is.
//
// Ends with 0 if everything was counted as the model says, 1 if not, 2 for bad arguments, 77 (and the reason) where
// programs cannot be loaded.

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <csignal>
#include <fstream>
#include <iostream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "fuzz/driver.h"
#include "fuzz/generator.h"
#include "fuzz/shrink.h"
#include "kernel/support/obstacle.h"
#include "kernel/support/running.h"
#include "support/run_tests.h"

namespace {

using namespace tacho::fuzz;
using Clock = std::chrono::steady_clock;

struct Wishes {
  std::uint64_t first = 1;
  std::uint64_t count = 0;
  long seconds = 0;  ///< 0: as long as it takes
  bool shrinks = true;
  std::vector<std::string> files;
};

Wishes wishes;

/// What is different, or what went wrong on the way.
std::string outcome(Driver& driver, const Life& life) {
  try {
    return driver.live(life);
  } catch (const std::exception& error) {
    return std::string("cannot be lived: ") + error.what() + "\n";
  }
}

/// The kind of a difference: of whom it is, and what.
std::string kind_of(const std::string& text) {
  return text.substr(0, text.find_first_of("0123456789"));
}

/// Whether nothing but times is different.
bool is_of_times_alone(const std::string& text) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.find(": sum of ") == std::string::npos) {
      return false;
    }
  }
  return true;
}

std::set<std::string> seen;
std::uint64_t once_in_times = 0;

/// Whether a life came out otherwise; then its shortest part that does is printed, once for every kind of difference.
bool differs(Driver& driver, const std::string& name, const Life& life) {
  const std::string first = outcome(driver, life);
  if (first.empty()) {
    return false;
  }
  // What is awaited is known to some microseconds, of a machine that nothing else disturbs.
  if (is_of_times_alone(first) && outcome(driver, life).empty()) {
    std::cout << "== " << name << ", once:\n" << first << std::flush;
    ++once_in_times;
    return false;
  }
  std::cout << "== " << name << "\n" << (wishes.shrinks ? "" : to_text(life)) << first << std::flush;
  if (!wishes.shrinks || !seen.insert(kind_of(first)).second) {
    return true;
  }
  const Life least = shrink(life, [&](const Life& part) { return kind_of(outcome(driver, part)) == kind_of(first); });
  std::cout << "-- the least of it\n" << to_text(least) << "-- where\n" << outcome(driver, least) << std::flush;
  return true;
}

std::string read_file(const std::string& path) {
  std::ifstream file(path);
  if (!file) {
    throw std::runtime_error("cannot read " + path);
  }
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace

TEST_CASE("lives are counted as the model says") {
  Driver driver;
  int different = 0;
  std::uint64_t lived = 0;
  for (const std::string& path : wishes.files) {
    different += differs(driver, path, from_text(read_file(path))) ? 1 : 0;
    ++lived;
  }
  const auto deadline = Clock::now() + std::chrono::seconds(wishes.seconds);
  for (std::uint64_t seed = wishes.first; seed < wishes.first + wishes.count; ++seed) {
    if (wishes.seconds > 0 && Clock::now() > deadline) {
      break;
    }
    different += differs(driver, fmt::format("seed {}", seed), generate(seed)) ? 1 : 0;
    ++lived;
  }
  std::cout << fmt::format("{} lives, {} of them counted otherwise, {} once in times alone, {} not judged\n", lived,
                           different, once_in_times, driver.excused());
  CHECK(lived > 0);
  CHECK(different == 0);
  CHECK(once_in_times <= 1 + lived / 1000);
}

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  try {
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      if (arguments[i] == "--seeds") {
        wishes.first = std::stoull(arguments.at(i + 1));
        wishes.count = std::stoull(arguments.at(i + 2));
        i += 2;
      } else if (arguments[i] == "--seconds") {
        wishes.seconds = std::stol(arguments.at(++i));
      } else if (arguments[i] == "--whole") {
        wishes.shrinks = false;
      } else {
        wishes.files.push_back(arguments[i]);
      }
    }
  } catch (const std::exception&) {
    std::cerr << "fuzz_lives [--seeds FIRST COUNT] [--seconds N] [--whole] [FILE…]\n";
    return 2;
  }
  if (const std::string reason = tacho::kernel_test::obstacle(); !reason.empty()) {
    std::cout << "no lives are lived: " << reason << "\n";
    return tacho::kernel_test::kSkipped;
  }
  spdlog::set_level(spdlog::level::err);
  std::signal(SIGPIPE, SIG_IGN);
  const tacho::kernel_test::Cgroup playground(tacho::kernel_test::playground());
  const int failed = tacho::test::run_tests(1, argv);
  tacho::kernel_test::stop_shared();
  return failed == 0 ? 0 : 1;
}
