#include "web/gate.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <limits>
#include <utility>

#include "web/request_head.h"

namespace tacho::web {
namespace {

constexpr int kAcceptBurst = 64;  // then the connections at hand get their turn

constexpr std::string_view kSpeakTls =
    "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n"
    "This port speaks HTTPS.\n";

bool watch(int epoll, int fd, unsigned events) {
  epoll_event event{.events = events, .data = {.fd = fd}};
  return ::epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0;
}

/// Whether accept would find a connection; leaves errno alone.
bool has_pending(int listener) {
  const int before = errno;
  pollfd look{.fd = listener, .events = POLLIN, .revents = 0};
  const bool found = ::poll(&look, 1, 0) > 0;
  errno = before;
  return found;
}

}  // namespace

struct Gate::Waiting {
  Waiting(int connection, bool speaks_tls) : socket(connection), tls(speaks_tls) {}
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;
  ~Waiting() {
    if (socket >= 0) {
      ::close(socket);
    }
  }

  int socket;  // −1: a worker's
  bool tls;
  bool ready = false;
  Clock::time_point accepted = Clock::now();
};

Result<std::unique_ptr<Gate>> Gate::open(std::vector<Listener> listeners, Hooks hooks, InFlight& in_flight,
                                         const GateLimits& limits) {
  std::unique_ptr<Gate> gate(new Gate(std::move(listeners), std::move(hooks), in_flight, limits));
  if (auto prepared = gate->prepare(); !prepared) {
    return std::unexpected(prepared.error());
  }
  gate->thread_ = std::thread([raw = gate.get()] { raw->run(); });
  return gate;
}

Gate::Gate(std::vector<Listener> listeners, Hooks hooks, InFlight& in_flight, const GateLimits& limits)
    : listeners_(std::move(listeners)), hooks_(std::move(hooks)), in_flight_(in_flight), limits_(limits) {}

Gate::~Gate() {
  stop_ = true;
  in_flight_.notify();
  if (thread_.joinable()) {
    thread_.join();
  }
}

Result<void> Gate::prepare() {
  epoll_ = UniqueFd(::epoll_create1(EPOLL_CLOEXEC));
  spare_ = UniqueFd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  bool good = epoll_ && spare_ && watch(epoll_.get(), in_flight_.event_fd(), EPOLLIN);
  for (const Listener& listener : listeners_) {
    good = good && watch(epoll_.get(), listener.fd(), EPOLLIN);
  }
  if (!good) {
    return fail_errno("web server: cannot wait for connections");
  }
  return {};
}

void Gate::run() {
  ::pthread_setname_np(::pthread_self(), "tacho-gate");
  std::array<epoll_event, 64> events{};
  while (!stop_) {
    const int count =
        ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), milliseconds_to_wait());
    for (int i = 0; i < count; ++i) {
      const epoll_event& event = events.at(static_cast<std::size_t>(i));
      if (event.data.fd == in_flight_.event_fd()) {
        eventfd_t ignored = 0;
        ::eventfd_read(event.data.fd, &ignored);
      } else if (const auto found = by_socket_.find(event.data.fd); found != by_socket_.end()) {
        examine(found->second, (event.events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0);
      } else if (std::ranges::find(listeners_, event.data.fd, &Listener::fd) != listeners_.end()) {
        accept_all(event.data.fd);
      }
    }
    serve_ready();
    expire();
  }
}

void Gate::accept_all(int listener) {
  for (int i = 0; i < kAcceptBurst; ++i) {
    const int connection = ::accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (connection >= 0) {
      ++counters_.accepted;
      admit(connection);
    } else if (!has_pending(listener)) {
      return;  // accept reports a lack of descriptors even then
    } else if ((errno == EMFILE || errno == ENFILE) && !make_room()) {
      // Left in the queue, the connection would wake us for ever: accept it to close it.
      spare_.reset();
      const UniqueFd refused(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
      spare_ = UniqueFd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    }
  }
}

/// Closes the connection that has waited longest, if there is one.
bool Gate::make_room() {
  if (line_.empty()) {
    return false;
  }
  drop(line_.begin());
  ++counters_.displaced;
  return true;
}

void Gate::admit(int connection) {
  if (line_.size() >= limits_.waiting) {
    make_room();
  }
  const int on = 1;
  ::setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));  // fails on a unix socket, which needs none
  line_.emplace_back(connection, hooks_.expects_tls());
  by_socket_[connection] = std::prev(line_.end());
  // Edge-triggered: bytes that were looked at and left do not wake us again.
  if (!watch(epoll_.get(), connection, EPOLLIN | EPOLLRDHUP | EPOLLET)) {
    drop(std::prev(line_.end()));
  }
}

void Gate::examine(Line::iterator waiting, bool no_more_data) {
  if (waiting->ready) {
    return;
  }
  std::array<char, kMaxRequestHead> peeked;  // 16 KiB, filled by recv
  const ssize_t count = ::recv(waiting->socket, peeked.data(), peeked.size(), MSG_PEEK | MSG_DONTWAIT);
  if (count <= 0) {
    if (count == 0 || errno != EAGAIN) {
      drop(waiting);
    }
    return;
  }
  switch (judge_arrival(std::span(peeked).first(static_cast<std::size_t>(count)), waiting->tls, no_more_data)) {
    case Arrival::incomplete:
      return;
    case Arrival::plain_on_tls:
      refuse_plain(*waiting);
      drop(waiting);
      return;
    case Arrival::complete:
      ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, waiting->socket, nullptr);
      waiting->ready = true;
      ++ready_;
      return;
  }
}

void Gate::refuse_plain(const Waiting& waiting) {
  std::array<char, kMaxRequestHead> ignored;
  // A close with unread bytes would reset the connection, and the client would not see the answer.
  ::recv(waiting.socket, ignored.data(), ignored.size(), MSG_DONTWAIT);
  ::send(waiting.socket, kSpeakTls.data(), kSpeakTls.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
}

void Gate::drop(Line::iterator waiting) {
  if (waiting->ready) {
    --ready_;
  }
  by_socket_.erase(waiting->socket);
  line_.erase(waiting);
}

void Gate::serve_ready() {
  const auto now = Clock::now();
  while (ready_ > 0) {
    const auto newest = std::prev(std::ranges::find(line_.rbegin(), line_.rend(), true, &Waiting::ready).base());
    if (!in_flight_.start(newest->socket, now)) {
      counters_.cut_off += in_flight_.cut_off(ready_, limits_.busy_patience, now);
      return;
    }
    const int socket = newest->socket;
    if (hooks_.hand_over(socket, newest->tls)) {
      by_socket_.erase(socket);
      newest->socket = -1;
      drop(newest);
    } else {
      in_flight_.cancel(socket);
      drop(newest);
    }
  }
}

void Gate::expire() {
  const auto now = Clock::now();
  while (!line_.empty() && line_.front().accepted + limits_.head_timeout <= now) {
    drop(line_.begin());
    ++counters_.timed_out;
  }
  counters_.cut_off += in_flight_.cut_off(std::numeric_limits<std::size_t>::max(), limits_.client_timeout, now);
}

int Gate::milliseconds_to_wait() const {
  const auto now = Clock::now();
  auto next = in_flight_.next_cut_off(limits_.client_timeout, now);
  if (ready_ > 0) {
    next = std::min(next, in_flight_.next_cut_off(limits_.busy_patience, now));
  }
  if (!line_.empty()) {
    next = std::min(next, line_.front().accepted + limits_.head_timeout);
  }
  if (next == Clock::time_point::max()) {
    return -1;
  }
  return static_cast<int>(std::max(std::chrono::ceil<std::chrono::milliseconds>(next - now).count(), std::int64_t{0}));
}

}  // namespace tacho::web
