#include "web/exchange.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <array>
#include <utility>
#include <variant>

#include "web/encoding.h"
#include "web/gate.h"

// What the gate does with one exchange: its phases, one after the other.

namespace tacho::web {
namespace {

constexpr unsigned char kHandshakeRecord = 22;
constexpr unsigned kLooks = 8;             // at what comes in drips, before the clock says when to look again
constexpr std::size_t kAtOnce = 64 << 10;  // bytes of an answer that wait for nobody
constexpr std::size_t kTurn = 256 << 10;   // bytes sent before others have their turn
constexpr std::size_t kMaxDrained = std::size_t{1} << 20;  // bytes of a body that nobody reads

constexpr std::string_view kSpeakTls =
    "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n"
    "This port speaks HTTPS.\n";

}  // namespace

bool Gate::step(Exchange& exchange, unsigned events) {
  switch (exchange.phase) {
    case Exchange::Phase::greeting:
      exchange.left = exchange.left || (events & static_cast<unsigned>(EPOLLRDHUP)) != 0;
      [[fallthrough]];
    case Exchange::Phase::reading:
      // That there is room to write is news only to who waits for it.
      if ((events & ~static_cast<unsigned>(EPOLLOUT)) != 0 || exchange.stream.wants_to_write()) {
        wait_to_be_read(exchange);
      }
      return true;
    case Exchange::Phase::working:
      return (events & (EPOLLHUP | EPOLLERR)) == 0;  // a client that only sends no more still waits for its answer
    case Exchange::Phase::sending:
      if ((events & static_cast<unsigned>(EPOLLOUT | EPOLLHUP | EPOLLERR)) != 0) {
        line_up(sendings_, exchange, exchange.of_source->known);
      }
      return true;
    case Exchange::Phase::closing:
      return drain(exchange);
  }
  std::unreachable();
}

/// For this thread, which does what takes long of each in its turn.
void Gate::line_up(FairQueue<Id>& line, Exchange& exchange, bool goes_first) {
  if (!exchange.in_line) {
    exchange.in_line = true;
    exchange.in_line_since = Clock::now();
    line.push(exchange.source.key, exchange.id, goes_first);
  }
}

/// Null: it has left meanwhile.
Exchange* Gate::next_in(FairQueue<Id>& line) {
  Exchange* const exchange = find(*line.pop());
  if (exchange != nullptr) {
    exchange->in_line = false;
    exchange->quiet_since = Clock::now();
    exchange->since += exchange->quiet_since - exchange->in_line_since;  // its time does not run while it waits for us
  }
  return exchange;
}

/// A handshake takes milliseconds with an RSA key; heads come by the thousand.
void Gate::wait_to_be_read(Exchange& exchange) {
  const bool greets = exchange.phase == Exchange::Phase::greeting;
  // Who answers our part of a handshake has waited for it, and takes little of our time.
  const bool answers = greets && exchange.stream.has_answered();
  line_up(greets ? handshakes_ : readings_, exchange, answers || exchange.of_source->known);
}

/// Does it for those in line that are still in that phase, until the time is over.
void Gate::take_turns(FairQueue<Id>& line, Exchange::Phase phase, std::chrono::milliseconds time,
                      bool (Gate::*what)(Exchange&)) {
  const auto until = Clock::now() + time;
  while (line.size() > 0 && Clock::now() < until) {
    Exchange* const exchange = next_in(line);
    if (exchange != nullptr && exchange->phase == phase && !(this->*what)(*exchange)) {
      drop(exchange->id);
    }
  }
}

bool Gate::shake_hands(Exchange& exchange) {
  unsigned char first = 0;
  if (exchange.looks == 0) {
    const ssize_t count = ::recv(exchange.stream.fd(), &first, 1, MSG_PEEK | MSG_DONTWAIT);
    if (count <= 0) {
      return count < 0 && errno == EAGAIN;
    }
    if (first != kHandshakeRecord) {
      std::size_t sent = 0;
      // In the clear, beside the TLS that is not there.
      sent = static_cast<std::size_t>(
          ::send(exchange.stream.fd(), kSpeakTls.data(), kSpeakTls.size(), MSG_DONTWAIT | MSG_NOSIGNAL));
      return sent == kSpeakTls.size() && close_softly(exchange);
    }
  }
  switch (exchange.stream.shake_hands()) {
    case Stream::Step::done:
      exchange.phase = Exchange::Phase::reading;
      exchange.looks = 0;
      return read(exchange);
    case Stream::Step::later:
      return look_again_later(exchange);
    case Stream::Step::ended:
      return false;
  }
  std::unreachable();
}

/// Each byte of a request may come alone, and wake us: from some time on the clock does.
bool Gate::look_again_later(Exchange& exchange) {
  if (++exchange.looks > kLooks) {
    exchange.paused = true;
    epoll_event event{.events = EPOLLET, .data = {.u64 = exchange.id}};
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, exchange.stream.fd(), &event);
  }
  return true;
}

bool Gate::read(Exchange& exchange) {
  std::array<char, 4096> bytes;  // filled by read
  while (true) {
    std::size_t count = 0;
    switch (exchange.stream.read(bytes, count)) {
      case Stream::Step::later:
        return look_again_later(exchange);
      case Stream::Step::ended:
        return !exchange.head.empty() && refuse(exchange, 400);
      case Stream::Step::done:
        break;
    }
    switch (exchange.head.add({bytes.data(), count})) {
      case HeadCollector::State::incomplete:
        break;
      case HeadCollector::State::complete:
        return take_request(exchange);
      case HeadCollector::State::malformed:
        return refuse(exchange, 400);
      case HeadCollector::State::too_large:
        return refuse(exchange, 431);
    }
  }
}

bool Gate::take_request(Exchange& exchange) {
  auto parsed = parse_request(exchange.head.take());
  if (const int* const status = std::get_if<int>(&parsed)) {
    return refuse(exchange, *status);
  }
  const auto policy = config_.policy();
  exchange.request = std::move(std::get<Request>(parsed));
  exchange.request.remote = exchange.source.address;
  exchange.request.local = exchange.source.local;
  exchange.request.encrypted = exchange.stream.tls();
  exchange.request.authenticated = exchange.stream.verified();
  exchange.options = {.head_only = exchange.request.method == "HEAD",
                      .gzip = accepts_gzip(exchange.request.header("Accept-Encoding")),
                      .headers = policy->headers};
  const std::string regular = exchange.of_source->known ? exchange.source.key : "";
  return place(exchange, site_.judge(exchange.request, *policy, regular));
}

bool Gate::refuse(Exchange& exchange, int status) {
  Response response = error_response(status);
  if (status == 503) {
    response.headers.emplace_back("Retry-After", "1");
  }
  exchange.options.headers = config_.policy()->headers;
  return answer(exchange, render(std::move(response), exchange.options), false);
}

bool Gate::answer(Exchange& exchange, Rendered rendered, bool good) {
  exchange.task.reset();
  exchange.answer = std::move(rendered);
  exchange.good = good;
  exchange.phase = Exchange::Phase::sending;
  exchange.since = Clock::now();
  exchange.answered = exchange.since;
  const std::size_t size = exchange.answer.body ? size_of(*exchange.answer.body) : 0;
  return write(exchange, exchange.answer.head.size() + (size <= kAtOnce ? size : 0));
}

/// Who takes hundreds of pages at a time delays who takes one by one turn for each of its own.
bool Gate::send_more(Exchange& exchange) {
  return write(exchange, kTurn);
}

/// Sends no more than that, and lines up for the rest.
bool Gate::write(Exchange& exchange, std::size_t most) {
  const std::size_t pieces = 1 + (exchange.answer.body ? exchange.answer.body->size() : 0);
  while (exchange.piece < pieces) {
    const std::string_view piece =
        exchange.piece == 0 ? exchange.answer.head : (*exchange.answer.body)[exchange.piece - 1].view();
    if (exchange.sent == piece.size()) {
      ++exchange.piece;
      exchange.sent = 0;
      continue;
    }
    if (most == 0) {
      line_up(sendings_, exchange, exchange.of_source->known);
      return true;
    }
    std::size_t count = 0;
    switch (exchange.stream.write(piece.substr(exchange.sent, most), count)) {
      case Stream::Step::later:
        return true;
      case Stream::Step::ended:
        return false;
      case Stream::Step::done:
        exchange.sent += count;
        exchange.taken += count;
        most -= count;
        exchange.since = Clock::now();
    }
  }
  if (exchange.good) {
    regulars_.served(exchange.source.key, exchange.since);
    exchange.of_source->known = regulars_.knows(exchange.source.key);
  }
  return close_softly(exchange);
}

bool Gate::close_softly(Exchange& exchange) {
  exchange.answer = {};
  exchange.phase = Exchange::Phase::closing;
  exchange.since = Clock::now();
  exchange.stream.finish();
  return drain(exchange);
}

bool Gate::drain(Exchange& exchange) {
  std::array<char, 16384> bytes;  // filled by recv
  while (exchange.drained < kMaxDrained) {
    const ssize_t count = ::recv(exchange.stream.fd(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (count <= 0) {
      // Who has nothing more to say may still read.
      return count == 0 ? exchange.stream.undelivered() > 0 : errno == EAGAIN;
    }
    exchange.drained += static_cast<std::size_t>(count);
  }
  return false;
}

}  // namespace tacho::web
