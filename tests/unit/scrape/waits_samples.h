#pragma once

#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <utility>
#include <vector>

#include "scrape/waits.h"

namespace tacho::scrape {

/// A target sampled once a second: what each second brings.
class Seconds {
 public:
  struct Second {
    std::uint64_t requests = 100;
    std::uint64_t slow = 1;     ///< of them
    std::uint64_t unknown = 0;  ///< besides
    double running = 0.2;       ///< threads on CPUs
    double runnable = 0;        ///< threads that wait for one
    double throttled = 0;       ///< share of the second
    double call_ms = 0;         ///< of one call a request to the peer in slot 2; 0: none
    std::vector<std::pair<request_part, double>> parts_ms{{TACHO_PART_CPU, 1.0}};  ///< of each request
    std::vector<std::pair<request_part, double>> slow_ms{{TACHO_PART_CPU, 1.0}};   ///< of a slow one
  };

  explicit Seconds(std::chrono::seconds window = std::chrono::seconds(10)) : history(window) { history.push(sums_); }

  Seconds& pass(int seconds, const Second& each) {
    for (int i = 0; i < seconds; ++i) {
      add(each);
      history.push(sums_);
    }
    return *this;
  }

  WaitHistory history;

 private:
  static std::uint64_t ns(double milliseconds) { return static_cast<std::uint64_t>(milliseconds * 1e6); }

  void add(const Second& each) {
    sums_.time_ns += 1'000'000'000;
    sums_.requests += each.requests + each.unknown;
    sums_.all.requests[0] += each.requests;
    sums_.slow.requests[0] += each.slow;
    for (const auto& [part, ms] : each.parts_ms) {
      sums_.all.ns.at(part) += each.requests * ns(ms);
    }
    for (const auto& [part, ms] : each.slow_ms) {
      sums_.slow.ns.at(part) += each.slow * ns(ms);
    }
    sums_.running_ns += ns(1000 * each.running);
    sums_.runnable_ns += ns(1000 * each.runnable);
    sums_.throttled_ns += ns(1000 * each.throttled);
    if (each.call_ms > 0) {
      sums_.calls.resize(1, {.slot = 2, .calls = 0, .ns = 0});
      sums_.calls[0].calls += each.requests;
      sums_.calls[0].ns += each.requests * ns(each.call_ms);
    }
  }

  WaitSums sums_{.time_ns = 1'000'000'000, .requests = 1, .all = {}, .slow = {}, .calls = {}};
};

}  // namespace tacho::scrape
