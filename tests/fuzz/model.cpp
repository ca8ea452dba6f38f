#include "fuzz/model.h"

#include <algorithm>
#include <utility>

#include "fuzz/numbers.h"

namespace tacho::fuzz {

using kernel_test::Moment;
using kernel_test::Span;

namespace {

/// After a pause of so many seconds, what was read before it was a message without a reply.
constexpr double kOnewayPause = 0.5;

}  // namespace

Target target_of(Place place) {
  return place == Place::client ? Target::client : place == Place::stranger ? Target::stranger : Target::server;
}

Place place_of(How how) {
  return how == How::sibling ? Place::sibling : Place::stranger;
}

std::string_view name_of(Target target) {
  constexpr std::array<std::string_view, kTargets.size()> kNames{"server", "stranger", "client"};
  return kNames.at(static_cast<std::size_t>(target));
}

std::size_t Model::End::unread() const {
  std::size_t bytes = 0;
  for (const Arrival& arrival : queue) {
    bytes += arrival.bytes;
  }
  return bytes;
}

void Model::apply(const Step& step, const Report& report) {
  if (step.act == Act::unwatch || step.act == Act::watch) {
    set_watched(step.act == Act::watch);
  } else if (step.act == Act::restart) {
    set_watched(false);
    set_watched(true);
    datagrams_.restart();
  }
  if (step.act == Act::forget) {
    datagrams_.forget(numbers(Target::server));
  }
  if (concerns_all(step.act)) {
    return;
  }
  if (datagrams_.knows(step.connection) || is_one_of(step.how, kDatagramKinds)) {
    datagrams_.apply(step, report, numbers(Target::server), numbers(Target::client));
    return;
  }
  if (step.act == Act::open) {
    open(step);
    connections_.at(step.connection).born = report.when;
    return;
  }
  Connection& c = connections_.at(step.connection);
  switch (step.act) {
    case Act::accept:
      c.accepted = true;
      break;
    case Act::client_send:
      send(c, false, step, report);
      break;
    case Act::server_send:
      send(c, true, step, report);
      break;
    case Act::client_read:
      read(c, false, step, report);
      break;
    case Act::server_read:
      c.reader = false;
      read(c, true, step, report);
      break;
    case Act::server_wait:
      c.reader = true;
      break;
    case Act::client_shut:
      c.client.shut = true;
      c.server.ended = true;
      break;
    case Act::server_shut:
      c.server.shut = true;
      c.client.ended = true;
      end_turn_unanswered(c);
      break;
    case Act::client_close:
    case Act::client_reset:
      close(c, false, step.act == Act::client_reset);
      break;
    case Act::server_close:
    case Act::server_reset:
      close(c, true, step.act == Act::server_reset);
      break;
    case Act::pass:
      c.server.place = place_of(step.how);
      break;
    default:
      break;
  }
}

void Model::open(const Step& step) {
  Connection c;
  c.kind = step.how;
  c.number = opened_++;
  if (c.is_tcp()) {
    numbers(Target::server)[kServerConnections] += 1;
    numbers(Target::client)[kClientConnections] += 1;
  }
  if (!watched_) {
    may_have_connections(c);
  }
  connections_.emplace(step.connection, std::move(c));
}

void Model::count_operation(const End& end, bool sends, const Step& step, std::int64_t bytes) {
  Expected& expected = numbers(end);
  expected[sends ? kSendOperations : kReceiveOperations] +=
      sends && (step.how == How::more || step.how == How::several) ? 2 : 1;
  expected[sends ? kSentBytes : kReceivedBytes] += static_cast<double>(bytes);
}

void Model::arrive(End& end, const Step& step, const Report& report) {
  end.queue.push_back(
      {.bytes = static_cast<std::size_t>(report.bytes),
       .when = {.earliest = report.when.earliest, .latest = std::max(report.arrived, report.when.latest)},
       .content = step.content,
       .waited_for = end.queue.empty()});
}

void Model::send(Connection& c, bool by_server, const Step& step, const Report& report) {
  End& self = by_server ? c.server : c.client;
  End& other = by_server ? c.client : c.server;
  if (by_server) {
    use_by_server(c);
  }
  c.greets = by_server ? c.greets && step.content != Content::welcome : c.greets || step.content == Content::hello;
  c.welcomes = by_server ? c.welcomes || step.content == Content::welcome : c.welcomes;
  count_operation(self, true, step, report.bytes);
  if (!by_server) {
    c.asked_unknown = (c.call && c.asked_unknown) || (step.content == Content::finished && !c.knows_keys);
    c.call = report.when;
    c.has_asked = true;
    c.asked = step.content == Content::proxy ? Content::text : step.content;
    c.asked_in_parts = step.how != How::send && step.how != How::write;
    c.torn_call = c.torn_call && !watched_;
  } else if (c.turn ? c.turn->unsure || c.turn->loose : c.torn) {
    answer_loosely(c, report);
  } else if (c.turn && !c.turn->is_request) {
    if (c.turn->brings_handshake) {
      // A flight with a goodbye behind it may be answered by either.
      numbers(self)[kHandshakes] += Span{.least = c.turn->brings_goodbye ? 0.0 : 1.0, .most = 1};
    }
    c.turn.reset();
  } else if (c.turn) {
    Expected& expected = numbers(self);
    expected[kRequests] += 1;
    expected[kQueue] += time_between(c.turn->begin, c.turn->begun);
    expected[kReceive] += time_between(c.turn->oldest, c.turn->begin);
    expected[kDuration] += time_between(c.turn->begin, report.when);
    expected[kService] += time_between(c.turn->last_read, report.when);
    c.turn.reset();
  }
  if (by_server && watched_ && std::exchange(c.torn, false) && (!c.is_tcp() || c.queued)) {
    // What waits there came at a time that may be forgotten.
    forget_times(self);
  }
  if (other.open) {
    arrive(other, step, report);
  } else if (c.is_tcp()) {
    reset(c, self);
  }
}

void Model::read(Connection& c, bool by_server, const Step& step, const Report& report) {
  End& self = by_server ? c.server : c.client;
  if (step.how == How::peek || report.bytes == 0) {
    return;
  }
  if (by_server) {
    use_by_server(c);
  }
  count_operation(self, false, step, report.bytes);
  std::vector<Arrival> taken;
  for (auto left = static_cast<std::size_t>(report.bytes); left > 0 && !self.queue.empty();) {
    Arrival& arrival = self.queue.front();
    const std::size_t part = std::min(left, arrival.bytes);
    taken.push_back(arrival);
    arrival.begun = true;
    arrival.bytes -= part;
    left -= part;
    if (arrival.bytes == 0) {
      self.queue.pop_front();
    }
  }
  c.knows_keys = c.knows_keys || (!by_server && watched_ && taken.front().content == Content::welcome);
  if (by_server) {
    // A thread may have waited in the call for long.
    Report come = report;
    come.when.earliest = std::max(come.when.earliest, taken.front().when.earliest);
    read_by_server(c, taken, come);
  } else if (c.torn_call) {
    Expected& expected = numbers(self);
    expected[kCalls] += Span{.least = 0, .most = 1};
    expected[kCallDuration] += Span{.least = 0, .most = time_between(c.born, report.when).most};
    c.call.reset();
    c.torn_call = !watched_;
  } else if (c.call && c.asked != Content::text && c.asked != Content::data && !c.asked_unknown &&
             (c.asked != Content::finished || !c.asked_in_parts)) {
    c.call.reset();
  } else if (c.call) {
    Expected& expected = numbers(self);
    const bool surely = c.asked != Content::finished && !c.asked_unknown;
    expected[kCalls] += Span{.least = surely ? 1.0 : 0.0, .most = 1};
    Span span = time_between(*c.call, taken.front().when);
    if (!surely || taken.front().unseen || !taken.front().waited_for || taken.front().begun ||
        taken.front().when.earliest < c.call->latest) {
      // What came back had come before the call was over: when the rest came is not known.
      span = {.least = 0, .most = time_between(*c.call, report.when).most};
    }
    expected[kCallDuration] += span;
    c.call.reset();
  }
}

void Model::read_by_server(Connection& c, const std::vector<Arrival>& taken, const Report& report) {
  if (!c.server.can_send()) {
    return;
  }
  const Arrival& first = taken.front();
  const bool waited = first.waited_for && !first.begun;
  if (c.turn && waited && !c.turn->is_request && !c.turn->brings_goodbye && first.content == Content::data) {
    // A Finished that gets no answer.
    c.turn.reset();
  }
  if (c.turn && waited) {
    const Span pause = time_between(c.turn->last_read, first.when);
    if (pause.most >= kOnewayPause) {
      const bool surely = pause.least > kOnewayPause && !c.turn->unsure;
      numbers(c.server)[kOneway] += Span{.least = surely ? 1.0 : 0.0, .most = 1};
      c.turn.reset();
    }
  }
  const Moment begin = waited ? first.when : Moment{.earliest = first.when.earliest, .latest = report.when.latest};
  const bool blind = std::exchange(c.blind, false) && watched_ && first.content == Content::finished;
  c.welcomes = false;
  if (!c.turn) {
    c.turn = Turn{.begin = begin, .oldest = begin, .begun = report.when, .last_read = report.when, .blind = blind};
    if (blind) {
      doubt(c);
    }
  } else if (waited) {
    c.turn->begin = begin;
    c.turn->begun = report.when;
  }
  c.turn->last_read = report.when;
  c.turn->blind = c.turn->blind && first.content == Content::finished;
  c.turn->unsure = c.turn->blind || (c.turn->unsure && !watched_);
  c.turn->loose = c.turn->loose || c.torn || std::ranges::any_of(taken, &Arrival::unseen);
  for (const Arrival& arrival : taken) {
    c.turn->bring(arrival.content);
  }
}

void Model::use_by_server(Connection& c) {
  const Target now = target_of(c.server.place);
  if (now == c.counted || !c.is_tcp()) {
    return;
  }
  c.counted = now;
  if (c.server.reset || (c.server.shut && c.server.ended)) {
    return;
  }
  // One that is half closed is closed there; whether it is one here is not said. What is sent to a client that has gone
  // brings a reset at once.
  numbers(now)[kServerConnections] += Span{.least = c.server.shut || !c.client.open ? 0.0 : 1.0, .most = 1};
}

void Model::end_turn_unanswered(Connection& c) {
  if (c.turn && c.turn->unsure) {
    c.turn.reset();
  }
  if (c.turn && c.turn->is_request && c.is_tcp()) {
    numbers(c.server)[kUnanswered] += 1;
  }
  if (c.turn) {
    // Whether such a turn has a queue time is not said.
    const Moment begin = c.turn->loose ? c.born : c.turn->begin;
    numbers(c.server)[kQueue] += Span{.least = 0, .most = time_between(begin, c.turn->begun).most};
  }
  c.turn.reset();
}

void Model::reset(Connection& c, End& end) {
  end.reset = true;
  end.ended = true;
  if (&end == &c.server) {
    end_turn_unanswered(c);
  }
}

void Model::close(Connection& c, bool by_server, bool abort) {
  End& self = by_server ? c.server : c.client;
  End& other = by_server ? c.client : c.server;
  const bool aborts = c.is_tcp() ? (abort || self.unread() > 0) && !self.reset : self.unread() > 0;
  self.open = false;
  if (by_server) {
    end_turn_unanswered(c);
  }
  // A connection of which both sides have said goodbye is not there any more to be reset.
  if (aborts && other.open && c.is_tcp() && !(self.ended && self.shut)) {
    reset(c, other);
  }
  other.ended = true;
}

std::optional<Step> Model::last_steps() const {
  for (const auto& [number, c] : connections_) {
    Step step{.connection = number};
    if (c.client.open) {
      step.act = Act::client_close;
    } else if (!c.accepted) {
      step.act = Act::accept;
    } else if (c.server.open) {
      step.act = Act::server_close;
    } else {
      continue;
    }
    if (can(step)) {
      return step;
    }
  }
  if (!watched_) {
    return Step{.act = Act::watch};
  }
  return datagrams_.last_step();
}

}  // namespace tacho::fuzz
