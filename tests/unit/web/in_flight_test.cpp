#include "web/in_flight.h"

#include <sys/socket.h>

#include <array>
#include <catch2/catch.hpp>
#include <thread>
#include <vector>

namespace tacho::web {
namespace {

using std::chrono_literals::operator""ms;

class Pair {
 public:
  Pair() {
    std::array<int, 2> sockets{};
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, sockets.data()) == 0);
    server_ = UniqueFd(sockets[0]);
    client_ = UniqueFd(sockets[1]);
  }
  [[nodiscard]] int server() const { return server_.get(); }
  [[nodiscard]] bool cut() const {
    char byte = 0;
    return ::recv(client_.get(), &byte, 1, 0) == 0;
  }

 private:
  UniqueFd server_;
  UniqueFd client_;
};

struct Fixture {
  std::unique_ptr<InFlight> table = std::move(*InFlight::create(3));
  InFlight::Clock::time_point start = InFlight::Clock::now();
  std::array<Pair, 4> pairs;

  /// Each starts 10 ms after the one before.
  void fill() {
    for (std::size_t i = 0; i < 3; ++i) {
      REQUIRE(table->start(pairs.at(i).server(), start + i * 10ms));
    }
  }
  [[nodiscard]] std::vector<bool> cut() const { return {pairs[0].cut(), pairs[1].cut(), pairs[2].cut()}; }
};

using Flags = std::vector<bool>;

TEST_CASE_METHOD(Fixture, "No more connections are served than there are workers") {
  fill();
  CHECK_FALSE(table->start(pairs[3].server(), start));
  table->closing(pairs[1].server());
  CHECK_FALSE(table->start(pairs[3].server(), start));
  table->closed();
  CHECK(table->start(pairs[3].server(), start));
}

TEST_CASE_METHOD(Fixture, "The slowest clients are cut off, as many as workers are wanted") {
  fill();
  CHECK(table->cut_off(2, 100ms, start + 1000ms) == 2);
  CHECK(cut() == Flags{true, true, false});
  SECTION("those on their way out count") {
    CHECK(table->cut_off(2, 100ms, start + 1000ms) == 0);
  }
  SECTION("also when they are about to be closed") {
    table->closing(pairs[0].server());
    CHECK(table->cut_off(2, 100ms, start + 1000ms) == 0);
    table->closed();
    CHECK(table->cut_off(2, 100ms, start + 1000ms) == 0);
    CHECK(table->cut_off(3, 100ms, start + 1000ms) == 1);
  }
}

TEST_CASE_METHOD(Fixture, "Nobody is cut off before the patience has passed") {
  fill();
  CHECK(table->cut_off(3, 100ms, start + 99ms) == 0);
  CHECK(table->cut_off(3, 100ms, start + 110ms) == 2);
  CHECK(cut() == Flags{true, true, false});
  CHECK(table->next_cut_off(100ms, start) == start + 120ms);
}

TEST_CASE_METHOD(Fixture, "A connection is not cut off while our code is at work for it") {
  fill();
  table->handling(pairs[0].server());
  CHECK(table->cut_off(1, 100ms, start + 1000ms) == 1);
  CHECK(cut() == Flags{false, true, false});
  table->sending(pairs[0].server(), start + 1000ms);
  CHECK(table->cut_off(2, 100ms, start + 1050ms) == 1);
  CHECK(cut() == Flags{false, true, true});
  CHECK(table->cut_off(3, 100ms, start + 1100ms) == 1);
  CHECK(cut() == Flags{true, true, true});
}

TEST_CASE_METHOD(Fixture, "At the end everybody is cut off as soon as our code is done") {
  fill();
  table->handling(pairs[2].server());
  table->cut_off_all();
  CHECK(cut() == Flags{true, true, false});
  table->sending(pairs[2].server(), start);
  CHECK(cut() == Flags{true, true, true});
}

TEST_CASE_METHOD(Fixture, "Waiting until all workers are free ends when the last is") {
  CHECK(table->wait_until_idle(0ms));
  fill();
  CHECK_FALSE(table->wait_until_idle(1ms));
  std::thread worker([&] {
    for (std::size_t i = 0; i < 3; ++i) {
      table->cancel(pairs.at(i).server());
    }
  });
  CHECK(table->wait_until_idle(10'000ms));
  worker.join();
}

}  // namespace
}  // namespace tacho::web
