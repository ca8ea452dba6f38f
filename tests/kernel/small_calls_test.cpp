// What is not seen of programs of 32 bit on a kernel of 64 bit: their operations have hooks, the arguments of their
// calls are not found.

#ifdef __x86_64__

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <cstdint>
#include <cstring>
#include <string>

#include "kernel/support/child.h"
#include "kernel/support/records.h"
#include "kernel/support/running.h"
#include "kernel/support/wire.h"

using tacho::UniqueFd;
using namespace tacho::kernel_test;

namespace {

constexpr int kConnections = 23;
constexpr std::size_t kReply = 100;

/// As their numbers are there.
enum class Call { kRead = 3, kWrite = 4, kGetPid = 20, kNanosleep = 162 };

/// By the way into the kernel that programs of 32 bit take. Pointers have to be below 4 GiB.
long call(Call number, long first = 0, const void* second = nullptr, std::size_t third = 0) {
  long result = static_cast<long>(number);
  asm volatile("int $0x80" : "+a"(result) : "b"(first), "c"(second), "d"(third) : "memory", "r8", "r9", "r10", "r11");
  return result;
}

/// A kernel without that way ends who takes it.
bool missing() {
  const pid_t child = ::fork();
  must(child >= 0, "fork");
  if (child == 0) {
    (void)call(Call::kGetPid);
    ::_exit(0);
  }
  int status = 0;
  must(::waitpid(child, &status, 0) == child, "waitpid");
  if (status != 0) {
    WARN("skipped: this kernel runs no programs of 32 bit");
  }
  return status != 0;
}

char* low_memory(std::size_t size) {
  void* found = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
  must(found != MAP_FAILED, "mmap");
  return static_cast<char*>(found);
}

void check_transfer(Call number, const UniqueFd& socket, char* buffer, std::size_t size) {
  must(call(number, socket.get(), buffer, size) == static_cast<long>(size), "a call of 32 bit");
}

}  // namespace

TEST_CASE("handshakes of TLS by programs of 32 bit count as requests") {
  if (missing()) {
    return;
  }
  const std::array<std::string, 3> turns{kHello, kChangeCipherSpec + kFinished, kRequest};
  const bool small = GENERATE(false, true);
  CAPTURE(small);
  const Watched where;
  Child server(where.directory(), [&](Line& parent) {
    char* const buffer = low_memory(4096);
    const UniqueFd listener = listen_tcp();
    parent.tell(port_of(listener));
    for (int i = 0; i < kConnections; ++i) {
      const UniqueFd connection = accept_from(listener);
      for (const std::string& turn : turns) {
        if (small) {
          check_transfer(Call::kRead, connection, buffer, turn.size());
          check_transfer(Call::kWrite, connection, buffer, kReply);
        } else {
          serve(connection, 1, turn.size(), kReply);
        }
      }
    }
    parent.tell();
    (void)parent.hear();
  });
  const auto port = static_cast<std::uint16_t>(server.hear());
  for (int i = 0; i < kConnections; ++i) {
    const UniqueFd client = connect_tcp(port);
    for (const std::string& turn : turns) {
      send_bytes(client, turn);
      receive_once(client, kReply);
    }
  }
  (void)server.hear();
  CHECK(where.value("tacho_handshakes_total") == (small ? 0 : 2 * kConnections));
  CHECK(where.value("tacho_requests_total") == (small ? 3 : 1) * kConnections);
  server.tell();
  server.finish();
}

TEST_CASE("what programs of 32 bit wait in is another call that has its number") {
  if (missing()) {
    return;
  }
  const Watched where;
  Child sleeper(where.directory(), [](Line& parent) {
    const std::array<std::int32_t, 2> time{0, 50'000'000};
    char* const at = low_memory(sizeof(time));
    std::memcpy(at, time.data(), sizeof(time));
    must(call(Call::kNanosleep, reinterpret_cast<long>(at)) == 0, "nanosleep");
    parent.tell();
    (void)parent.hear();
  });
  (void)sleeper.hear();
  CHECK(where.value("tacho_offcpu_seconds_total", {{"syscall", "other"}}) >= 0.05);
  CHECK(where.value("tacho_offcpu_seconds_total", {{"syscall", "nanosleep"}}) == 0);
  sleeper.tell();
  sleeper.finish();
}

#endif
