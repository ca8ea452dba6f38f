#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "web/gate.h"
#include "web/pending.h"
#include "web/reserve.h"

// Which connection is closed where there is not room for all.

namespace tacho::web {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kLittle = 16 << 10;  // bytes of an answer that every connection may have
constexpr int kSecondChances = 16;         // for those that turn out to have sent what was waited for

/// For how long we have waited for the client.
Exchange::Clock::duration waited_for(const Exchange& exchange, Exchange::Clock::time_point now) {
  if (exchange.in_line) {
    return Exchange::Clock::duration::zero();
  }
  if (exchange.waits_for_request()) {
    return now - exchange.quiet_since;
  }
  return exchange.phase == Exchange::Phase::sending ? now - exchange.since : Exchange::Clock::duration::zero();
}

/// Bytes a second that its client has taken of its answer, as a power of two. Who has just begun is no slow one.
int pace(const Exchange& exchange, Exchange::Clock::time_point now) {
  constexpr std::chrono::duration<double> kBeginning = 250ms;
  constexpr double kAdvance = 256 << 10;
  const std::chrono::duration<double> age = now - exchange.answered;
  return std::ilogb((static_cast<double>(exchange.taken) + kAdvance) / std::max(age, kBeginning).count());
}

}  // namespace

/// Of the source that has most the one that has kept us waiting longest, rather one whose answer is written; before
/// all, one that has its answer or left amid its handshake.
Exchange* Gate::find_victim(const Eligible& eligible) {
  // This is done for each connection of a flood: it looks up no text.
  const auto known =
      static_cast<std::size_t>(std::ranges::count_if(companions_, [](const auto& each) { return each.second.known; }));
  const std::size_t kept = kept_by_each(limits_.connections, known);
  const auto weight = [kept](const Companions& source) {
    return source.connections - (source.known ? std::min(source.connections, kept) : 0);
  };
  const auto now = Clock::now();
  Exchange* victim = nullptr;
  std::tuple<std::size_t, std::size_t, bool, Clock::duration, Clock::duration> most;
  for (auto& [id, exchange] : exchanges_) {
    if (!eligible(exchange)) {
      continue;
    }
    const bool closing = exchange.phase == Exchange::Phase::closing;
    const bool left = exchange.left && exchange.phase == Exchange::Phase::greeting;
    if (left || (closing && exchange.stream.undelivered() == 0)) {
      return &exchange;
    }
    const std::tuple rank(weight(*exchange.of_source), exchange.of_source->connections, closing,
                          waited_for(exchange, now), -exchange.accepted.time_since_epoch());
    if (victim == nullptr || rank > most) {
      victim = &exchange;
      most = rank;
    }
  }
  return victim;
}

/// Of handshakes there may be fewer than of connections, and fewer still of one source.
void Gate::make_room_for_handshake(const Exchange& latest) {
  const auto* const source = latest.of_source;
  const auto shakes = [](const Exchange& each) { return each.phase == Exchange::Phase::greeting; };
  const auto shakes_there = [&](const Exchange& each) { return shakes(each) && each.of_source == source; };
  const auto count = [this](const auto& which) {
    return static_cast<std::size_t>(
        std::ranges::count_if(exchanges_, [&](const auto& each) { return which(each.second); }));
  };
  if (count(shakes_there) > limits_.source_handshakes) {
    displace(shakes_there);
  } else if (count(shakes) > limits_.handshakes) {
    displace(shakes);
  }
}

/// Closes one connection. False: none is eligible.
bool Gate::displace(const Eligible& eligible) {
  for (int attempt = 0;; ++attempt) {
    Exchange* const victim = find_victim(eligible);
    if (victim == nullptr) {
      return false;
    }
    // What it sent may have waited for us: then it did not keep us waiting.
    const bool waits_for_us = attempt < kSecondChances && victim->waits_for_request() && !victim->paused &&
                              !victim->in_line && has_pending(victim->stream.fd());
    if (waits_for_us) {
      wait_to_be_read(*victim);
      continue;
    }
    if (victim->phase != Exchange::Phase::closing || victim->stream.undelivered() > 0) {
      ++counters_.displaced;
    }
    drop(victim->id);
    return true;
  }
}

void Gate::hold(AllHeld& held, const std::shared_ptr<const Pieces>& body) {
  if (const std::size_t size = size_of(*body); size > kLittle) {
    held.push_back({.body = body, .size = size});
  }
}

/// Of those that somebody still has; the others are forgotten.
std::size_t Gate::bytes_of(AllHeld& held) {
  std::erase_if(held, [](const Held& each) { return each.body.expired(); });
  std::size_t sum = 0;
  for (const Held& each : held) {
    sum += each.size;
  }
  return sum;
}

/// The same for each source; what several have counts for each.
Gate::BytesOfSources Gate::bytes_of_sources(const AllHeld& held) const {
  std::unordered_map<const Pieces*, std::size_t> sizes;
  for (const Held& each : held) {
    sizes.emplace(each.body.lock().get(), each.size);
  }
  std::map<std::string, std::set<const Pieces*>> bodies;
  for (const auto& [id, exchange] : exchanges_) {
    if (exchange.answer.body && sizes.contains(exchange.answer.body.get())) {
      bodies[exchange.source.key].insert(exchange.answer.body.get());
    }
  }
  BytesOfSources bytes;
  for (const auto& [source, own] : bodies) {
    for (const Pieces* const body : own) {
      bytes[source] += sizes.at(body);
    }
  }
  return bytes;
}

/// Closes the connections whose clients have taken nothing of them for a while, or those of one source. Who was served
/// before may lose a packet, which comes again after a fifth of a second at the soonest.
void Gate::drop_stale(const AllHeld& held, Clock::time_point now, const std::string* of) {
  std::vector<std::shared_ptr<const Pieces>> bodies;
  for (const Held& each : held) {
    bodies.push_back(each.body.lock());
  }
  std::ranges::sort(bodies);
  drop_if(
      [&](const Exchange& each) {
        const auto patience = each.of_source->known ? limits_.page_waits : limits_.patience;
        return each.phase == Exchange::Phase::sending && !each.in_line && each.since + patience <= now &&
               (of == nullptr || each.source.key == *of) && each.answer.body &&
               std::ranges::binary_search(bodies, each.answer.body);
      },
      &counters_.cut_off);
}

/// Takes one back, from all who have it: from the sources that have most of them; of several from those that were never
/// served before, then from those that take it slowest; of equal ones the first. One that also somebody has with a
/// better claim stays with all. False: nobody has any.
/// @param from take it from that source alone
bool Gate::take_back(const AllHeld& held, const std::string* from) {
  using Claim = std::tuple<std::ptrdiff_t, bool, int, std::size_t>;  // the least loses
  std::unordered_map<const Pieces*, std::size_t> bodies;             // in the order in which they were made
  for (std::size_t number = 0; number < held.size(); ++number) {
    bodies.emplace(held[number].body.lock().get(), number);
  }
  std::unordered_map<const Companions*, std::set<const Pieces*>> of_sources;
  std::vector<const Exchange*> holders;
  for (const auto& [id, exchange] : exchanges_) {
    if (exchange.answer.body && bodies.contains(exchange.answer.body.get()) &&
        (from == nullptr || exchange.source.key == *from)) {
      of_sources[exchange.of_source].insert(exchange.answer.body.get());
      holders.push_back(&exchange);
    }
  }
  const auto now = Clock::now();
  const auto known_sources =
      static_cast<std::size_t>(std::ranges::count_if(of_sources, [](const auto& each) { return each.first->known; }));
  const std::size_t kept = kept_by_each(held.size(), known_sources);
  std::unordered_map<const Pieces*, Claim> best;
  for (const Exchange* const each : holders) {
    const bool known = each->of_source->known && kept > 0;
    const std::size_t count = of_sources[each->of_source].size();
    const Claim claim(-static_cast<std::ptrdiff_t>(count - (known ? std::min(count, kept) : 0)), known,
                      pace(*each, now), bodies.at(each->answer.body.get()));
    const auto [found, is_new] = best.try_emplace(each->answer.body.get(), claim);
    found->second = std::max(found->second, claim);
  }
  if (best.empty()) {
    return false;
  }
  const Pieces* const least = std::ranges::min_element(best, {}, [](const auto& each) { return each.second; })->first;
  drop_if(
      [&](const Exchange& each) {
        return each.answer.body.get() == least && (from == nullptr || each.source.key == *from);
      },
      &counters_.cut_off);
  return true;
}

/// What slow readers have of answers would fill the memory. Each is made already, so nobody can be made to wait; one
/// that is too large alone stays.
void Gate::make_room_for_answers(Clock::time_point now) {
  if (bytes_of(answers_) <= limits_.held_answers) {
    return;
  }
  drop_stale(answers_, now);
  while (bytes_of(answers_) > limits_.held_answers && answers_.size() > 1 && take_back(answers_)) {
  }
}

}  // namespace tacho::web
