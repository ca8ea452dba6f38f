#include "process/filters.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <functional>

#include "boundary/lane.h"

using namespace tacho;

namespace {

/// What a process comes to that has installed that filter.
bool may(process::Filter filter, const std::function<bool()>& what) {
  const pid_t child = ::fork();
  if (child == 0) {
    const bool installed = ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && process::install(filter);
    ::_exit(!installed ? 2 : what() ? 0 : 1);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  REQUIRE(WEXITSTATUS(status) != 2);
  return WEXITSTATUS(status) == 0;
}

}  // namespace

TEST_CASE("the collector makes lanes that take few answers, and changes nothing else of a socket") {
  using process::Filter;
  for (const Filter filter : {Filter::collector, Filter::telling_collector}) {
    CHECK(may(filter, [] {
      const auto lane = boundary::make_lane();
      return lane && boundary::limit_unread(lane->first.get());
    }));
    const auto lane = boundary::make_lane();
    REQUIRE(lane);
    CHECK_FALSE(may(filter, [&] {
      const int on = 1;
      return ::setsockopt(lane->first.get(), SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) == 0;
    }));
    CHECK_FALSE(may(filter, [] { return ::socket(AF_INET, SOCK_STREAM, 0) >= 0; }));
  }
}

TEST_CASE("who serves opens no file and makes no lane") {
  CHECK_FALSE(may(process::Filter::web, [] { return ::open("/proc/self/status", O_RDONLY) >= 0; }));
  CHECK_FALSE(may(process::Filter::web, [] { return boundary::make_lane().has_value(); }));
}
