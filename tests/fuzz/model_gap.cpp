#include "fuzz/model.h"
#include "fuzz/numbers.h"

// While nothing is watched, and what is left of it afterwards.

namespace tacho::fuzz {

using kernel_test::Span;

namespace {

constexpr Span kOnceOrNot{.least = 0, .most = 1};
constexpr Span kAnyTime{.least = 0, .most = 1e3};

}  // namespace

void Model::set_watched(bool watched) {
  watched_ = true;
  for (auto& [number, c] : connections_) {
    if (c.turn) {
      // Whether the gap ends it, and how, is not said.
      doubt(c);
      c.turn->unsure = true;
    }
    forget_times(c.server);
    forget_times(c.client);
    c.torn = true;
    c.torn_call = true;
    c.queued = !c.accepted;
    c.blind = c.welcomes;
    c.knows_keys = false;
    if (watched) {
      may_have_connections(c);
      c.counted = target_of(c.server.place);
    }
  }
  watched_ = watched;
}

/// Whether the turn ends without a reply, or begins at all, is not said.
void Model::doubt(const Connection& c) {
  Expected& expected = numbers(c.server);
  expected[kUnanswered] += kOnceOrNot;
  expected[kOneway] += kOnceOrNot;
  expected[kQueue] += kAnyTime;
  expected[kReceive] += kAnyTime;
}

void Model::forget_times(End& end) {
  for (Arrival& arrival : end.queue) {
    arrival.unseen = true;
  }
}

/// One that began unseen may be found when it is older, or told by a hook that knows the listening socket.
void Model::may_have_connections(const Connection& c) {
  if (c.is_tcp() && c.server.open) {
    expected_.at(static_cast<std::size_t>(target_of(c.server.place)))[kServerConnections] += kOnceOrNot;
  }
  if (c.is_tcp() && c.client.open) {
    expected_.at(static_cast<std::size_t>(Target::client))[kClientConnections] += kOnceOrNot;
  }
}

/// A turn that may be known from before a gap, or whose beginning may not be known.
void Model::answer_loosely(Connection& c, const Report& report) {
  Expected& expected = numbers(c.server);
  const bool surely = c.turn && !c.turn->unsure && c.turn->is_request;
  expected[kRequests] += surely ? Span{.least = 1, .most = 1} : kOnceOrNot;
  if (c.turn && c.turn->brings_handshake) {
    expected[kHandshakes] += kOnceOrNot;
  }
  for (const auto sum : {kQueue, kReceive, kDuration, kService}) {
    expected[sum] += Span{.least = 0, .most = time_between(c.born, report.when).most};
  }
  c.turn.reset();
}

}  // namespace tacho::fuzz
