#include "base/service_manager.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <cstddef>
#include <cstring>
#include <filesystem>

#include "base/unique_fd.h"

namespace {

using namespace std::chrono_literals;
using tacho::ServiceManager;

/// What systemd's end of the socket receives.
class Receiver {
 public:
  explicit Receiver(std::string name) : socket_(::socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, name.data(), name.size());
    if (name.front() == '@') {
      address.sun_path[0] = '\0';
    }
    const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
    REQUIRE(::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&address), length) == 0);
  }

  /// The next message; empty if there is none.
  std::string next() {
    std::array<char, 512> buffer{};
    const auto length = ::recv(socket_.get(), buffer.data(), buffer.size(), 0);
    return length > 0 ? std::string(buffer.data(), static_cast<std::size_t>(length)) : "";
  }

 private:
  tacho::UniqueFd socket_;
};

std::string own_name(const std::string& end) {
  return "tacho-notify-" + std::to_string(::getpid()) + "-" + end;
}

}  // namespace

TEST_CASE("the service manager is told what happens, on a path and on an abstract name") {
  const std::string path = (std::filesystem::temp_directory_path() / own_name("path")).string();
  for (const std::string& name : {path, "@" + own_name("abstract")}) {
    Receiver systemd(name);
    ServiceManager manager(name, "");
    CHECK(manager.asks());
    manager.ready("3 targets");
    CHECK(systemd.next() == "READY=1\nSTATUS=3 targets");
    manager.reloading();
    CHECK(systemd.next().starts_with("RELOADING=1\nMONOTONIC_USEC="));
    manager.stopping();
    CHECK(systemd.next() == "STOPPING=1");
    CHECK(systemd.next().empty());
  }
  std::filesystem::remove(path);
}

TEST_CASE("the watchdog hears of it twice in the time that it tolerates, and only if it asks") {
  const std::string name = "@" + own_name("watchdog");
  Receiver systemd(name);
  ServiceManager manager(name, "30000000");
  const ServiceManager::Clock::time_point start{1h};
  for (auto passed = 0s; passed < 45s; passed += 1s) {
    manager.alive(start + passed);
  }
  CHECK(systemd.next() == "WATCHDOG=1");
  CHECK(systemd.next() == "WATCHDOG=1");
  CHECK(systemd.next() == "WATCHDOG=1");
  CHECK(systemd.next().empty());
  for (const char* const nothing : {"", "0", "-5", "many", "5 s"}) {
    ServiceManager unwatched(name, nothing);
    unwatched.alive(start);
    CHECK(systemd.next().empty());
  }
}

TEST_CASE("without a service manager, or with one that is gone, nothing happens") {
  ServiceManager nobody("", "1000000");
  CHECK_FALSE(nobody.asks());
  nobody.ready("");
  ServiceManager gone("@" + own_name("nobody-listens"), "1000000");
  gone.ready("");
  gone.alive(ServiceManager::Clock::now());
  ServiceManager too_long("/" + std::string(200, 'x'), "");
  too_long.stopping();
}

TEST_CASE("the journal is known by the device and inode of what is written to") {
  std::array<int, 2> ends{};
  REQUIRE(::pipe(ends.data()) == 0);
  const tacho::UniqueFd reading(ends[0]);
  const tacho::UniqueFd writing(ends[1]);
  struct stat about{};
  REQUIRE(::fstat(writing.get(), &about) == 0);
  const std::string named = std::to_string(about.st_dev) + ":" + std::to_string(about.st_ino);
  CHECK(tacho::is_journal(writing.get(), named));
  CHECK_FALSE(tacho::is_journal(writing.get(), named + "0"));
  CHECK_FALSE(tacho::is_journal(writing.get(), ""));
  CHECK_FALSE(tacho::is_journal(-1, named));
}
