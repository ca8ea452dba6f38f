#include "process/capabilities.h"

#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <csignal>

using namespace tacho::process;
using namespace std::chrono_literals;

TEST_CASE("what a process may do is known for ten seconds, what memory it has is asked each time") {
  const int pid = ::getpid();
  const auto direct = rights_of("test", pid);
  REQUIRE(direct);
  const auto now = RightsReader::Clock::now();
  RightsReader reader("test");
  for (const auto later : {0s, 1s, 11s}) {
    const auto read = reader.read(pid, now + later);
    REQUIRE(read);
    CHECK(read->process == "test");
    CHECK(read->pid == pid);
    CHECK(read->uid == ::getuid());
    CHECK(read->capabilities == direct->capabilities);
    CHECK(read->memory_bytes > 0);
  }
  constexpr std::size_t kMore = std::size_t{32} << 20;
  const std::string more(kMore, 'x');
  CHECK(more.back() == 'x');
  CHECK(reader.read(pid, now + 12s)->memory_bytes > direct->memory_bytes + kMore / 2);
}

TEST_CASE("who is gone has no rights any more, and the next one has its own") {
  const pid_t child = ::fork();
  if (child == 0) {
    ::pause();
    ::_exit(0);
  }
  const auto now = RightsReader::Clock::now();
  RightsReader reader("test");
  CHECK(reader.read(child, now));
  ::kill(child, SIGKILL);
  REQUIRE(::waitpid(child, nullptr, 0) == child);
  CHECK_FALSE(reader.read(child, now + 1s));
  const auto own = reader.read(::getpid(), now + 2s);
  REQUIRE(own);
  CHECK(own->pid == ::getpid());
}
