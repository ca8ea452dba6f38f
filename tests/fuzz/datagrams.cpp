#include "fuzz/datagrams.h"

#include <algorithm>
#include <array>

namespace tacho::fuzz {

using kernel_test::Moment;

namespace {

constexpr std::array kSendWays{How::send, How::write, How::sendmsg};
constexpr std::array kReadWays{How::recv, How::read, How::recvmsg, How::peek};

constexpr std::string_view kBothEphemeral =
    "of a socket older than tacho the ports tell who asks, and here both are ephemeral";

/// Of a unix socket's queue (net.unix.max_dgram_qlen is 10 by default): behind those the sender waits.
constexpr std::size_t kMostLetters = 8;

/// Whether one more finds room in a receive buffer of the least size that Linux gives by default
/// (net.core.rmem_default, 208 KiB), where a datagram takes up to twice its length and a head: what finds none is lost
/// without a word.
bool has_room(How kind, const auto& waiting, std::int64_t bytes) {
  if (kind == How::letter) {
    return waiting.size() < kMostLetters;
  }
  constexpr std::int64_t kRoom = 208 * std::int64_t{1024};
  constexpr std::int64_t kHead = 1280;
  for (const auto& datagram : waiting) {
    bytes += datagram.bytes;
  }
  return 2 * bytes + static_cast<std::int64_t>(waiting.size() + 1) * kHead <= kRoom;
}

/// One that was not seen to have come may have come as late as it was read.
Moment arrival_of(const auto& arrival, const Report& read) {
  return {.earliest = arrival.when.earliest, .latest = arrival.surely ? arrival.when.latest : read.when.latest};
}

}  // namespace

bool Datagrams::can(const Step& step) const {
  const auto found = peers_.find(step.connection);
  if (step.act == Act::open) {
    return found == peers_.end();
  }
  if (found == peers_.end()) {
    return false;
  }
  const Peer& peer = found->second;
  const auto waiting = waiting_.find(peer.kind);
  switch (step.act) {
    case Act::client_send:
      return peer.open && step.bytes > 0 && is_one_of(step.how, kSendWays) &&
             (waiting == waiting_.end() || has_room(peer.kind, waiting->second, step.bytes));
    case Act::client_read:
      return peer.open && step.bytes > 0 && !peer.answers.empty() && is_one_of(step.how, kReadWays);
    case Act::server_read:
      return step.bytes > 0 && waiting != waiting_.end() && !waiting->second.empty() && is_one_of(step.how, kReadWays);
    case Act::server_send:
      return peer.open && step.bytes > 0 && step.how == How::send && peer.has_asked &&
             has_room(peer.kind, peer.answers, step.bytes);
    case Act::client_close:
      // A reply to nobody is refused or not, as it happens.
      return peer.open && peer.requests.empty() &&
             (waiting == waiting_.end() || std::ranges::none_of(waiting->second, [&step](const Arrival& arrival) {
                return arrival.connection == step.connection;
              }));
    default:
      return false;
  }
}

int Datagrams::next_for_server(int connection) const {
  return waiting_.at(peers_.at(connection).kind).front().bytes;
}

int Datagrams::next_for_client(int connection) const {
  return peers_.at(connection).answers.front().bytes;
}

bool Datagrams::arrives_alone(const Step& step) const {
  const Peer& peer = peers_.at(step.connection);
  const auto waiting = waiting_.find(peer.kind);
  return step.act == Act::server_send ? peer.answers.empty() : waiting == waiting_.end() || waiting->second.empty();
}

void Datagrams::apply(const Step& step, const Report& report, Expected& server, Expected& client) {
  if (step.act == Act::open) {
    peers_[step.connection] = Peer{.kind = step.how};
    return;
  }
  Peer& peer = peers_.at(step.connection);
  switch (step.act) {
    case Act::client_send:
      client[kSendOperations] += 1;
      client[kSentBytes] += static_cast<double>(report.bytes);
      peer.unanswered_calls += 1;
      peer.speaks_quic = peer.speaks_quic || step.content == Content::quic;
      peer.older = false;
      peer.call_open = true;
      waiting_[peer.kind].push_back({.connection = step.connection,
                                     .bytes = step.bytes,
                                     .when = {report.when.earliest, std::max(report.arrived, report.when.latest)},
                                     .surely = report.arrived > 0});
      break;
    case Act::client_read:
      client_read(peer, step, report, client);
      break;
    case Act::server_read:
      server_read(peer.kind, step, report, server);
      break;
    case Act::server_send:
      server_send(peer, step, report, server);
      break;
    case Act::client_close:
      peer.open = false;
      break;
    default:
      break;
  }
}

void Datagrams::client_read(Peer& peer, const Step& step, const Report& report, Expected& client) {
  if (step.how == How::peek) {
    return;
  }
  if (peer.older) {
    excuse_ = kBothEphemeral;
  }
  peer.answers.pop_front();
  client[kReceiveOperations] += 1;
  client[kReceivedBytes] += static_cast<double>(report.bytes);
  client[kCalls] +=
      kernel_test::Span{.least = peer.call_open ? 1.0 : 0.0, .most = peer.unanswered_calls > 0 ? 1.0 : 0.0};
  client[kCallDuration] += kernel_test::Span{.least = 0, .most = 1e3};
  peer.call_open = false;
  peer.unanswered_calls = std::max(0, peer.unanswered_calls - 1);
}

void Datagrams::server_read(How kind, const Step& step, const Report& report, Expected& server) {
  if (step.how == How::peek) {
    return;
  }
  std::deque<Arrival>& waiting = waiting_.at(kind);
  const Arrival arrival = waiting.front();
  waiting.pop_front();
  server[kReceiveOperations] += 1;
  server[kReceivedBytes] += static_cast<double>(report.bytes);
  Peer& peer = peers_.at(arrival.connection);
  peer.has_asked = true;
  // Which of several a reply answers is not known.
  const bool beside = std::ranges::any_of(peer.requests, &Request::forgotten);
  peer.requests.push_back({.arrival = arrival_of(arrival, report),
                           .read = report.when,
                           .unseen = arrival.unseen || beside,
                           .forgotten = beside});
  server[kQueue] += arrival.unseen ? kernel_test::Span{.least = 0, .most = 1e3}
                                   : time_between(peer.requests.back().arrival, report.when);
}

bool Datagrams::has_late(const Peer& peer) const {
  return peer.late > 0 || (peer.kind == How::letter && std::ranges::any_of(peers_, [](const auto& other) {
                             return other.second.kind == How::letter && other.second.late > 0;
                           }));
}

bool Datagrams::can_forget() const {
  return !empty() && std::ranges::none_of(peers_, [](const auto& peer) { return peer.second.late > 0; });
}

Datagrams::Peer& Datagrams::answered_by(Peer& peer) {
  if (peer.kind != How::letter || !peer.requests.empty()) {
    return peer;
  }
  for (auto& [connection, other] : peers_) {
    if (other.kind == peer.kind && !other.requests.empty()) {
      return other;
    }
  }
  return peer;
}

void Datagrams::server_send(Peer& peer, const Step& step, const Report& report, Expected& server) {
  server[kSendOperations] += 1;
  server[kSentBytes] += static_cast<double>(report.bytes);
  peer.answers.push_back({.connection = step.connection, .bytes = step.bytes, .when = report.when});
  Peer& answered = answered_by(peer);
  Request request;
  request.unseen = true;
  if (!answered.requests.empty()) {
    if (has_late(answered)) {
      for (auto& [connection, other] : peers_) {
        other.mixed = other.mixed || &other == &answered || (other.kind == How::letter && answered.kind == other.kind);
      }
    } else {
      request = answered.requests.front();
    }
    answered.requests.pop_front();
    chosen_ = chosen_ || !answered.requests.empty() || answered.kind == How::letter;
  } else if (answered.late > 0) {
    --answered.late;
  } else {
    excuse_ = "a datagram that answers nothing goes out";
    return;
  }
  ++answered_;
  quic_answered_ += answered.speaks_quic ? 1 : 0;
  if (request.forgotten) {
    excuse_ = kBothEphemeral;
  }
  if (request.unseen) {
    server[kRequests] += 1;
    for (const auto sum : {kDuration, kService}) {
      server[sum] += kernel_test::Span{.least = 0, .most = 1e3};
    }
    return;
  }
  server[kRequests] += 1;
  server[kDuration] += time_between(request.arrival, report.when);
  server[kService] += time_between(request.read, report.when);
}

void Datagrams::restart() {
  for (auto& [connection, peer] : peers_) {
    for (Request& request : peer.requests) {
      request.unseen = true;
      request.forgotten = true;
    }
    peer.call_open = false;
    peer.older = true;
  }
  for (auto& [kind, waiting] : waiting_) {
    for (Arrival& arrival : waiting) {
      arrival.unseen = true;
    }
  }
}

void Datagrams::forget(Expected& server) {
  if (chosen_) {
    // The sums are the same whichever was answered only if all are.
    for (const auto sum : {kDuration, kService}) {
      server[sum] += kernel_test::Span{.least = -1e3, .most = 1e3};
    }
  }
  for (auto& [connection, peer] : peers_) {
    for (const Request& request : peer.requests) {
      server[kOneway] += kernel_test::Span{.least = request.forgotten ? 0.0 : 1.0, .most = 1};
      ++peer.late;
    }
    peer.requests.clear();
  }
}

bool Datagrams::must_be_answered(const Peer& peer) {
  // The next life's letters come to the same socket.
  return peer.late > 0 && (peer.mixed || peer.kind == How::letter);
}

std::optional<Step> Datagrams::last_step() const {
  for (const auto& [connection, peer] : peers_) {
    const auto waiting = waiting_.find(peer.kind);
    Step step{.connection = connection, .bytes = 8192};
    if (waiting != waiting_.end() && !waiting->second.empty()) {
      step.act = Act::server_read;
      step.how = How::recv;
    } else if (peer.open && !peer.answers.empty()) {
      step.act = Act::client_read;
      step.how = How::recv;
    } else if (peer.open && (!peer.requests.empty() || must_be_answered(peer))) {
      step.act = Act::server_send;
      step.how = How::send;
    } else if (peer.open) {
      step.act = Act::client_close;
    } else {
      continue;
    }
    return step;
  }
  return std::nullopt;
}

}  // namespace tacho::fuzz
