#include <algorithm>
#include <chrono>
#include <cstddef>
#include <string>
#include <tuple>
#include <unordered_map>

#include "web/gate.h"
#include "web/pending.h"

// Which connection is closed where there is not room for all.

namespace tacho::web {
namespace {

constexpr std::size_t kKept = 16;   // connections that a source keeps that was served before
constexpr int kSecondChances = 16;  // for those that turn out to have sent what was waited for

}  // namespace

/// Of the source that has most the oldest that keeps us waiting, rather one whose answer is written; before all, one
/// that has its answer.
Exchange* Gate::find_victim(const Eligible& eligible) {
  std::unordered_map<std::string, std::size_t> weights;
  for (const auto& [id, exchange] : exchanges_) {
    ++weights[exchange.source.key];
  }
  for (auto& [key, weight] : weights) {
    weight -= std::min(weight, regulars_.knows(key) ? kKept : std::size_t{0});
  }
  Exchange* victim = nullptr;
  std::tuple<std::size_t, bool, bool, Clock::duration> most;
  for (auto& [id, exchange] : exchanges_) {
    if (!eligible(exchange)) {
      continue;
    }
    const bool closing = exchange.phase == Exchange::Phase::closing;
    if (closing && exchange.stream.undelivered() == 0) {
      return &exchange;
    }
    const std::tuple rank(weights[exchange.source.key], !exchange.in_line, closing,
                          -exchange.accepted.time_since_epoch());
    if (victim == nullptr || rank > most) {
      victim = &exchange;
      most = rank;
    }
  }
  return victim;
}

/// Closes one connection. False: none is eligible.
bool Gate::displace(const Eligible& eligible) {
  for (int attempt = 0;; ++attempt) {
    Exchange* const victim = find_victim(eligible);
    if (victim == nullptr) {
      return false;
    }
    const auto phase = victim->phase;
    // What it sent may have waited for us: then it did not keep us waiting.
    const bool waits_for_us = attempt < kSecondChances && victim->waits_for_request() && !victim->paused &&
                              !victim->in_line && has_pending(victim->stream.fd());
    if (waits_for_us && phase == Exchange::Phase::greeting) {
      greet(*victim);
      continue;
    }
    if (waits_for_us) {
      const Id id = victim->id;
      if (!step(*victim, 0)) {
        drop(id);
        return true;
      }
      if (victim->phase != phase) {
        continue;
      }
    }
    if (phase != Exchange::Phase::closing || victim->stream.undelivered() > 0) {
      ++counters_.displaced;
    }
    drop(victim->id);
    return true;
  }
}

}  // namespace tacho::web
