// A server that does all its socket operations through io_uring: requests and replies of a fixed number of bytes, as
// exact_server's. Prints "listening ADDRESS" when it is ready and what it counted as one line of JSON on SIGTERM.
#include <liburing.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <csignal>
#include <cstdint>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/address.h"

namespace tacho::support {
namespace {

constexpr unsigned kQueue = 256;
constexpr unsigned kBuffers = 64;  // provided ones, of which the kernel takes one for each multishot receive
constexpr std::size_t kBufferBytes = 4096;
constexpr unsigned kSubmissionIdle = 50;  // ms until the kernel's submission thread sleeps
constexpr std::uint16_t kGroup = 1;
constexpr unsigned kDescriptorShift = 8;

enum Operation : std::uint8_t { kSignal, kAccept, kReceive, kSend, kProvide };

struct Options {
  bool multishot = false;   ///< one submission accepts, or receives, again and again, into provided buffers
  bool zero_copy = false;   ///< IORING_OP_SEND_ZC
  bool read_write = false;  ///< IORING_OP_READ and WRITE in place of RECV and SEND
  bool submission_thread = false;
  std::size_t request_bytes = 64;
  std::size_t reply_bytes = 64;
};

struct Connection {
  std::size_t received = 0;  ///< of the request that is not complete
  std::size_t sent = 0;      ///< of the reply
  std::vector<char> buffer;
};

class Server {
 public:
  Server(const Options& options, int listener, int signals)
      : options_(options), listener_(listener), signals_(signals), reply_(options.reply_bytes, 'r') {}
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  Server(Server&&) = delete;
  Server& operator=(Server&&) = delete;

  ~Server() {
    if (running_) {
      io_uring_queue_exit(&ring_);
    }
  }

  /// Until a signal comes.
  Result<void> serve() {
    io_uring_params parameters{};
    if (options_.submission_thread) {
      parameters.flags = IORING_SETUP_SQPOLL;
      parameters.sq_thread_idle = kSubmissionIdle;
    }
    if (const int code = io_uring_queue_init_params(kQueue, &ring_, &parameters); code != 0) {
      return fail("io_uring_queue_init: error " + std::to_string(-code));
    }
    running_ = true;
    auto* entry = next(signals_, kSignal);
    io_uring_prep_poll_add(entry, signals_, POLLIN);
    tag(entry);
    accept();
    if (options_.multishot) {
      provide(0, kBuffers);
    }
    for (;;) {
      io_uring_submit_and_wait(&ring_, 1);
      io_uring_cqe* event = nullptr;
      while (io_uring_peek_cqe(&ring_, &event) == 0) {
        const auto what = static_cast<Operation>(event->user_data & 0xff);
        const int descriptor = static_cast<int>(event->user_data >> kDescriptorShift);
        if (what == kSignal) {
          return {};
        }
        handle(what, descriptor, *event);
        io_uring_cqe_seen(&ring_, event);
      }
    }
  }

  [[nodiscard]] std::string tally() const {
    return nlohmann::json{{"connections", accepted_}, {"requests", requests_}}.dump();
  }

 private:
  io_uring_sqe* next(int descriptor, Operation what) {
    io_uring_sqe* entry = io_uring_get_sqe(&ring_);
    while (entry == nullptr) {
      io_uring_submit(&ring_);
      entry = io_uring_get_sqe(&ring_);
    }
    pending_ = static_cast<std::uint64_t>(descriptor) << kDescriptorShift | what;
    return entry;
  }

  /// What `prep` functions clear is set behind them.
  void tag(io_uring_sqe* entry) const { entry->user_data = pending_; }

  void accept() {
    auto* entry = next(listener_, kAccept);
    if (options_.multishot) {
      io_uring_prep_multishot_accept(entry, listener_, nullptr, nullptr, 0);
    } else {
      io_uring_prep_accept(entry, listener_, nullptr, nullptr, 0);
    }
    tag(entry);
  }

  void provide(unsigned first, unsigned count) {
    auto* entry = next(0, kProvide);
    io_uring_prep_provide_buffers(entry, provided_.data() + first * kBufferBytes, kBufferBytes, static_cast<int>(count),
                                  kGroup, static_cast<int>(first));
    tag(entry);
  }

  void receive(int socket) {
    auto& buffer = connections_[socket].buffer;
    auto* entry = next(socket, kReceive);
    if (options_.multishot) {
      io_uring_prep_recv_multishot(entry, socket, nullptr, 0, 0);
      entry->flags |= IOSQE_BUFFER_SELECT;
      entry->buf_group = kGroup;
    } else if (options_.read_write) {
      io_uring_prep_read(entry, socket, buffer.data(), static_cast<unsigned>(buffer.size()), 0);
    } else {
      io_uring_prep_recv(entry, socket, buffer.data(), buffer.size(), 0);
    }
    tag(entry);
  }

  void send(int socket, std::size_t from) {
    const char* data = reply_.data() + from;
    const std::size_t length = reply_.size() - from;
    auto* entry = next(socket, kSend);
    if (options_.zero_copy) {
      io_uring_prep_send_zc(entry, socket, data, length, 0, 0);
    } else if (options_.read_write) {
      io_uring_prep_write(entry, socket, data, static_cast<unsigned>(length), 0);
    } else {
      io_uring_prep_send(entry, socket, data, length, 0);
    }
    tag(entry);
  }

  void handle(Operation what, int descriptor, const io_uring_cqe& event) {
    const bool more = (event.flags & IORING_CQE_F_MORE) != 0;
    switch (what) {
      case kAccept:
        if (event.res >= 0) {
          ++accepted_;
          connections_[event.res].buffer.resize(options_.request_bytes);
          receive(event.res);
        }
        if (!more) {
          accept();
        }
        break;
      case kReceive:
        received(descriptor, event, more);
        break;
      case kSend:
        // The notification that a zero-copy send is over follows the result.
        if ((event.flags & IORING_CQE_F_NOTIF) == 0) {
          sent(descriptor, event.res);
        }
        break;
      case kSignal:
      case kProvide:
        break;
    }
  }

  void received(int socket, const io_uring_cqe& event, bool more) {
    if ((event.flags & IORING_CQE_F_BUFFER) != 0) {
      provide(event.flags >> IORING_CQE_BUFFER_SHIFT, 1);
    }
    if (event.res == -ENOBUFS) {
      receive(socket);
      return;
    }
    if (event.res <= 0) {
      connections_.erase(socket);
      close(socket);
      return;
    }
    auto& connection = connections_[socket];
    connection.received += static_cast<std::size_t>(event.res);
    if (connection.received >= options_.request_bytes) {
      connection.received -= options_.request_bytes;
      connection.sent = 0;
      send(socket, 0);
    }
    if (!more) {
      receive(socket);
    }
  }

  void sent(int socket, int result) {
    const auto connection = connections_.find(socket);
    if (connection == connections_.end() || result < 0) {
      return;
    }
    connection->second.sent += static_cast<std::size_t>(result);
    if (connection->second.sent < reply_.size()) {
      send(socket, connection->second.sent);
    } else {
      ++requests_;
    }
  }

  Options options_;
  int listener_;
  int signals_;
  bool running_ = false;
  std::string reply_;
  std::vector<char> provided_ = std::vector<char>(kBuffers * kBufferBytes);
  std::map<int, Connection> connections_;
  std::uint64_t pending_ = 0;
  std::uint64_t accepted_ = 0;
  std::uint64_t requests_ = 0;
  io_uring ring_{};
};

Result<void> run(const std::string& address, const Options& options) {
  const auto listener = listen_at(address);
  if (!listener) {
    return std::unexpected(listener.error());
  }
  sigset_t endings;
  sigemptyset(&endings);
  sigaddset(&endings, SIGTERM);
  sigaddset(&endings, SIGINT);
  sigprocmask(SIG_BLOCK, &endings, nullptr);
  const UniqueFd signals(signalfd(-1, &endings, SFD_CLOEXEC));
  Server server(options, listener->socket.get(), signals.get());
  std::cout << "listening " << listener->name << '\n' << std::flush;
  if (auto served = server.serve(); !served) {
    return served;
  }
  std::cout << server.tally() << '\n' << std::flush;
  return {};
}

}  // namespace
}  // namespace tacho::support

int main(int argc, char** argv) {
  std::string address;
  tacho::support::Options options;
  CLI::App app("A server on io_uring");
  app.add_option("--listen", address, "127.0.0.1:PORT, [::1]:PORT (0: any) or unix:PATH")->required();
  app.add_option("--multishot", options.multishot, "multishot accept and receive, provided buffers");
  app.add_option("--zero-copy", options.zero_copy, "IORING_OP_SEND_ZC");
  app.add_option("--read-write", options.read_write, "IORING_OP_READ and WRITE");
  app.add_option("--submission-thread", options.submission_thread, "IORING_SETUP_SQPOLL");
  app.add_option("--request-bytes", options.request_bytes)->check(CLI::PositiveNumber);
  app.add_option("--reply-bytes", options.reply_bytes)->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);
  if (const auto done = tacho::support::run(address, options); !done) {
    std::cerr << "uring_server: " << done.error().message << '\n';
    return 1;
  }
  return 0;
}
