#include "kernel/support/child.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <exception>
#include <fstream>
#include <stdexcept>
#include <utility>

namespace tacho::kernel_test {
namespace {

constexpr int kPatienceMs = 30'000;
constexpr unsigned kLongestLifeSeconds = 60;

[[noreturn]] void fail_with_errno(const std::string& what) {
  throw std::system_error(errno, std::system_category(), what);
}

std::array<int, 2> make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    fail_with_errno("pipe2");
  }
  return ends;
}

std::pair<Line, Line> make_lines() {
  const auto down = make_pipe();
  const auto up = make_pipe();
  return {Line(up[0], down[1]), Line(down[0], up[1])};
}

/// Closes everything but the standard three and these two.
void close_all_but(int a, int b) {
  const auto low = static_cast<unsigned>(std::min(a, b));
  const auto high = static_cast<unsigned>(std::max(a, b));
  constexpr unsigned kFirst = 3;
  if (low > kFirst) {
    ::syscall(SYS_close_range, kFirst, low - 1, 0);
  }
  if (high > low + 1) {
    ::syscall(SYS_close_range, low + 1, high - 1, 0);
  }
  ::syscall(SYS_close_range, high + 1, ~0U, 0);
}

[[noreturn]] void live(const std::string& cgroup, const Child::Body& body, Line& line) {
  int status = 0;
  try {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::alarm(kLongestLifeSeconds);
    close_all_but(line.in(), line.out());
    if (!cgroup.empty()) {
      move_to(cgroup, ::getpid());
    }
    body(line);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "child %d: %s\n", ::getpid(), error.what());
    status = 1;
  }
  ::_exit(status);
}

}  // namespace

void move_to(const std::string& directory, pid_t process) {
  std::ofstream file(directory + "/cgroup.procs");
  file << process << std::flush;
  if (!file) {
    throw std::runtime_error("cannot move to " + directory);
  }
}

void Line::tell(std::uint64_t word) const {
  tell(std::span(&word, 1));
}

void Line::tell(std::span<const std::uint64_t> words) const {
  if (::write(out_.get(), words.data(), words.size_bytes()) != static_cast<ssize_t>(words.size_bytes())) {
    fail_with_errno("tell");
  }
}

std::uint64_t Line::hear() const {
  std::uint64_t word = 0;
  hear(std::span(&word, 1));
  return word;
}

void Line::hear(std::span<std::uint64_t> words) const {
  // Not poll() before a plain read: in a watched child that would be counted. A child is ended by its alarm.
  const auto length = ::read(in_.get(), words.data(), words.size_bytes());
  if (length != static_cast<ssize_t>(words.size_bytes())) {
    throw std::runtime_error(length == 0 ? "the other side has ended" : "cannot hear the other side");
  }
}

Child::Child(const std::string& cgroup, const Body& body) : Child(cgroup, body, make_lines()) {}

Child::Child(const std::string& cgroup, const Body& body, std::pair<Line, Line> lines)
    : line_(std::move(lines.first)), pid_(::fork()) {
  if (pid_ < 0) {
    fail_with_errno("fork");
  }
  if (pid_ == 0) {
    line_ = std::move(lines.second);
    live(cgroup, body, line_);
  }
}

Child::~Child() {
  kill();
}

std::uint64_t Child::hear() const {
  std::uint64_t word = 0;
  hear(std::span(&word, 1));
  return word;
}

void Child::hear(std::span<std::uint64_t> words) const {
  pollfd readable{.fd = line_.in(), .events = POLLIN, .revents = 0};
  if (::poll(&readable, 1, kPatienceMs) != 1) {
    throw std::runtime_error("a child has said nothing for half a minute");
  }
  line_.hear(words);
}

void Child::kill() {
  if (pid_ > 0) {
    ::kill(pid_, SIGKILL);
    ::waitpid(std::exchange(pid_, -1), nullptr, 0);
  }
}

void Child::finish() {
  int status = 0;
  REQUIRE(::waitpid(std::exchange(pid_, -1), &status, 0) > 0);
  CAPTURE(status);
  CHECK((WIFEXITED(status) && WEXITSTATUS(status) == 0));
}

}  // namespace tacho::kernel_test
