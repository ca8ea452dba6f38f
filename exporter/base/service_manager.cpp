#include "base/service_manager.h"

#include <spdlog/spdlog.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <charconv>
#include <cstddef>
#include <cstdlib>
#include <cstring>

#include "base/unique_fd.h"

namespace tacho {
namespace {

std::string_view environment(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

bool send(const std::string& socket, const std::string& state) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (socket.size() >= sizeof(address.sun_path)) {
    errno = ENAMETOOLONG;
    return false;
  }
  std::memcpy(address.sun_path, socket.data(), socket.size());
  if (socket.front() == '@') {
    address.sun_path[0] = '\0';
  }
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + socket.size());
  const UniqueFd sender(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  return sender && ::sendto(sender.get(), state.data(), state.size(), MSG_NOSIGNAL | MSG_DONTWAIT,
                            reinterpret_cast<const sockaddr*>(&address), length) >= 0;
}

}  // namespace

ServiceManager::ServiceManager(std::string_view socket, std::string_view watchdog_usec) : socket_(socket) {
  std::int64_t microseconds = 0;
  const auto [end, error] =
      std::from_chars(watchdog_usec.data(), watchdog_usec.data() + watchdog_usec.size(), microseconds);
  if (error == std::errc{} && end == watchdog_usec.data() + watchdog_usec.size() && microseconds > 0) {
    // Half of what is tolerated, as sd_watchdog_enabled(3) advises.
    interval_ = std::chrono::microseconds(microseconds) / 2;
  }
}

ServiceManager ServiceManager::from_environment() {
  const std::string_view pid = environment("WATCHDOG_PID");
  const bool meant = pid.empty() || pid == std::to_string(::getpid());
  return {environment("NOTIFY_SOCKET"), meant ? environment("WATCHDOG_USEC") : ""};
}

void ServiceManager::ready(std::string_view status) {
  tell("READY=1\nSTATUS=" + std::string(status));
}

void ServiceManager::reloading() {
  const auto now = std::chrono::duration_cast<std::chrono::microseconds>(Clock::now().time_since_epoch()).count();
  tell("RELOADING=1\nMONOTONIC_USEC=" + std::to_string(now));
}

void ServiceManager::stopping() {
  tell("STOPPING=1");
}

void ServiceManager::alive(Clock::time_point now) {
  if (interval_ > Clock::duration::zero() && now >= next_) {
    next_ = now + interval_;
    tell("WATCHDOG=1");
  }
}

void ServiceManager::tell(const std::string& state) {
  if (socket_.empty() || send(socket_, state)) {
    return;
  }
  if (!complained_) {
    spdlog::warn("cannot tell the service manager \"{}\" at {}: {}", state, socket_, std::strerror(errno));
  }
  complained_ = true;
}

bool is_journal(int descriptor, std::string_view journal_stream) {
  struct stat about{};
  return ::fstat(descriptor, &about) == 0 &&
         journal_stream == std::to_string(about.st_dev) + ":" + std::to_string(about.st_ino);
}

}  // namespace tacho
