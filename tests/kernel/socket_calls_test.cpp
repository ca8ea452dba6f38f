// Every system call that moves data counts, each as one operation.

#include <fcntl.h>
#include <linux/errqueue.h>
#include <netinet/in.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <cerrno>
#include <string>
#include <vector>

#include "kernel/support/child.h"
#include "kernel/support/running.h"
#include "kernel/support/wire.h"

using tacho::UniqueFd;
using namespace tacho::kernel_test;

namespace {

constexpr std::size_t kSize = 61;
std::array<char, 4096> data{};

/// A system call on a socket that moves kSize bytes in each of `operations` operations.
struct Call {
  const char* name;
  void (*run)(int socket);
  int operations = 1;
};

void moved(ssize_t bytes, const char* what) {
  must(bytes == static_cast<ssize_t>(kSize), what);
}

std::array<iovec, 2> two_parts() {
  return {{{data.data(), 30}, {data.data() + 30, kSize - 30}}};
}

msghdr message_of(std::array<iovec, 2>& parts) {
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = parts.size();
  return message;
}

/// `count` messages of kSize bytes by sendmmsg or recvmmsg.
void move_messages(int socket, unsigned count, bool send) {
  std::array<std::array<iovec, 2>, 3> parts{two_parts(), two_parts(), two_parts()};
  std::array<mmsghdr, 3> messages{};
  for (unsigned i = 0; i < count; ++i) {
    messages.at(i).msg_hdr = message_of(parts.at(i));
  }
  const int done = send ? ::sendmmsg(socket, messages.data(), count, 0)
                        : ::recvmmsg(socket, messages.data(), count, MSG_WAITALL, nullptr);
  must(done == static_cast<int>(count), "sendmmsg or recvmmsg");
}

UniqueFd file_of_size() {
  UniqueFd file(::open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  must(static_cast<bool>(file), "temporary file");
  moved(::write(file.get(), data.data(), kSize), "write");
  must(::lseek(file.get(), 0, SEEK_SET) == 0, "lseek");
  return file;
}

const std::vector<Call> kSends{
    {"send", [](int socket) { moved(::send(socket, data.data(), kSize, 0), "send"); }},
    {"sendto", [](int socket) { moved(::sendto(socket, data.data(), kSize, MSG_DONTWAIT, nullptr, 0), "sendto"); }},
    {"sendmsg",
     [](int socket) {
       auto parts = two_parts();
       const msghdr message = message_of(parts);
       moved(::sendmsg(socket, &message, 0), "sendmsg");
     }},
    {"sendmmsg", [](int socket) { move_messages(socket, 1, true); }},
    {"sendmmsg of three messages", [](int socket) { move_messages(socket, 3, true); }, 3},
    {"write", [](int socket) { moved(::write(socket, data.data(), kSize), "write"); }},
    {"writev",
     [](int socket) {
       const auto parts = two_parts();
       moved(::writev(socket, parts.data(), parts.size()), "writev");
     }},
    {"sendfile",
     [](int socket) {
       const UniqueFd file = file_of_size();
       moved(::sendfile(socket, file.get(), nullptr, kSize), "sendfile");
     }},
    {"splice",
     [](int socket) {
       std::array<int, 2> pipe{};
       must(::pipe(pipe.data()) == 0, "pipe");
       const UniqueFd out(pipe[0]);
       const UniqueFd in(pipe[1]);
       moved(::write(in.get(), data.data(), kSize), "write");
       moved(::splice(out.get(), nullptr, socket, nullptr, kSize, 0), "splice");
     }},
    {"zero-copy send",
     [](int socket) {
       const int on = 1;
       must(::setsockopt(socket, SOL_SOCKET, SO_ZEROCOPY, &on, sizeof(on)) == 0, "SO_ZEROCOPY");
       moved(::send(socket, data.data(), kSize, MSG_ZEROCOPY), "send");
     }},
};

const std::vector<Call> kReceives{
    {"recv", [](int socket) { moved(::recv(socket, data.data(), kSize, MSG_WAITALL), "recv"); }},
    {"recvfrom",
     [](int socket) { moved(::recvfrom(socket, data.data(), kSize, MSG_WAITALL, nullptr, nullptr), "recvfrom"); }},
    {"recvmsg",
     [](int socket) {
       auto parts = two_parts();
       msghdr message = message_of(parts);
       moved(::recvmsg(socket, &message, MSG_WAITALL), "recvmsg");
     }},
    {"recvmmsg", [](int socket) { move_messages(socket, 1, false); }},
    {"read", [](int socket) { moved(::read(socket, data.data(), kSize), "read"); }},
    {"readv",
     [](int socket) {
       const auto parts = two_parts();
       moved(::readv(socket, parts.data(), parts.size()), "readv");
     }},
};

/// A watched process at the other end of `peer` that makes each call when it is told to.
class Caller {
 public:
  Caller(const Watched& where, const std::vector<Call>& calls)
      : child_(where.directory(),
               [&calls](Line& parent) {
                 const UniqueFd listener = listen_tcp();
                 parent.tell(port_of(listener));
                 const UniqueFd socket = accept_from(listener);
                 for (const Call& call : calls) {
                   (void)parent.hear();
                   call.run(socket.get());
                   parent.tell();
                 }
                 (void)parent.hear();
               }),
        peer_(connect_tcp(static_cast<std::uint16_t>(child_.hear()))) {}

  void start() const { child_.tell(); }
  void wait() const { (void)child_.hear(); }
  [[nodiscard]] const UniqueFd& peer() const { return peer_; }
  void finish() {
    child_.tell();
    child_.finish();
  }

 private:
  Child child_;
  UniqueFd peer_;
};

double bytes(const Watched& where, const char* direction) {
  return where.value("tacho_socket_bytes_total", {{"direction", direction}});
}

}  // namespace

TEST_CASE("every call that sends is one operation a message") {
  const Watched where;
  Caller caller(where, kSends);
  for (const Call& call : kSends) {
    CAPTURE(call.name);
    const double operations_before = where.sends();
    const double bytes_before = bytes(where, "send");
    caller.start();
    receive_once(caller.peer(), kSize * static_cast<std::size_t>(call.operations));
    caller.wait();
    CHECK(where.sends() == operations_before + call.operations);
    CHECK(bytes(where, "send") == bytes_before + static_cast<double>(kSize) * call.operations);
  }
  CHECK(where.receives() == 0);
  caller.finish();
}

TEST_CASE("every call that receives is one operation") {
  const Watched where;
  Caller caller(where, kReceives);
  for (const Call& call : kReceives) {
    CAPTURE(call.name);
    const double operations_before = where.receives();
    const double bytes_before = bytes(where, "receive");
    send_once(caller.peer(), kSize);
    caller.start();
    caller.wait();
    CHECK(where.receives() == operations_before + call.operations);
    CHECK(bytes(where, "receive") == bytes_before + kSize);
  }
  CHECK(where.sends() == 0);
  caller.finish();
}

TEST_CASE("what comes from the error queue is no data") {
  static const std::vector<Call> calls{
      {"zero-copy send and its completion", [](int socket) {
         const int on = 1;
         must(::setsockopt(socket, SOL_SOCKET, SO_ZEROCOPY, &on, sizeof(on)) == 0, "SO_ZEROCOPY");
         const std::string large(1 << 16, 'x');  // small ones are copied and complete at once
         must(::send(socket, large.data(), large.size(), MSG_ZEROCOPY) == static_cast<ssize_t>(large.size()), "send");
         std::array<char, 128> control{};
         msghdr message{};
         message.msg_control = control.data();
         message.msg_controllen = control.size();
         // The completion comes when the other side has taken the data; recvmsg never waits for the error queue.
         int status = 0;
         for (int i = 0; i < 10'000 && (status = static_cast<int>(::recvmsg(socket, &message, MSG_ERRQUEUE))) < 0;
              ++i) {
           must(errno == EAGAIN, "MSG_ERRQUEUE");
           ::usleep(1'000);
         }
         must(status >= 0, "a completion");
       }}};
  const Watched where;
  Caller caller(where, calls);
  caller.start();
  receive_once(caller.peer(), 1 << 16);
  caller.wait();
  CHECK(where.receives() == 0);
  CHECK(where.sends() >= 1);
  CHECK(bytes(where, "send") == 1 << 16);
  caller.finish();
}
