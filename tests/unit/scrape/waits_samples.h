#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <utility>

#include "scrape/waits.h"

namespace tacho::scrape {

/// A target sampled once a second: what each second brings.
class Seconds {
 public:
  /// Milliseconds by part.
  struct Parts {
    Parts(std::initializer_list<std::pair<request_part, double>> given) {
      for (const auto& [part, milliseconds] : given) {
        ms.at(part) = milliseconds;
      }
    }
    std::array<double, TACHO_PARTS> ms{};
  };
  struct Second {
    std::uint64_t requests = 100;
    std::uint64_t slow = 0;     ///< of them
    std::uint64_t unknown = 0;  ///< besides
    double running = 0.2;       ///< threads on CPUs
    double runnable = 0;        ///< threads that wait for one
    double throttled = 0;       ///< share of the second
    double call_ms = 0;         ///< of each call to the peer in slot 2; 0: none
    double calls = 1;           ///< of these, a request
    double in_line_ms = 0;      ///< a request: of calls by threads that had one to answer
    double threshold_ms = 0;
    double cores = 4;
    Parts parts_ms{{TACHO_PART_CPU, 1.0}};  ///< of each request
    Parts slow_ms{{TACHO_PART_CPU, 1.0}};   ///< of a slow one
  };

  explicit Seconds(std::chrono::seconds window = std::chrono::seconds(10)) : history(window) { history.push(sums_); }

  Seconds& pass(int seconds, const Second& each) {
    for (int i = 0; i < seconds; ++i) {
      add(each);
      history.push(sums_);
    }
    return *this;
  }

  /// tacho does not run for so many seconds, and the target goes on as in the last one.
  Seconds& stop(int seconds) {
    sums_.time_ns += std::int64_t{seconds} * 1'000'000'000;
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
    for (std::size_t part = 0; part < TACHO_PARTS; ++part) {
      sums_.all.ns.at(part) += each.requests * ns(each.parts_ms.ms.at(part));
      sums_.slow.ns.at(part) += each.slow * ns(each.slow_ms.ms.at(part));
    }
    sums_.running_ns += ns(1000 * each.running);
    sums_.runnable_ns += ns(1000 * each.runnable);
    sums_.throttled_ns += ns(1000 * each.throttled);
    sums_.slow_ns = ns(each.threshold_ms);
    sums_.cores = each.cores;
    if (each.call_ms > 0) {
      sums_.calls.resize(1, {.slot = 2, .calls = 0, .ns = 0, .in_line_ns = 0});
      sums_.calls[0].calls += static_cast<std::uint64_t>(static_cast<double>(each.requests) * each.calls);
      sums_.calls[0].ns += each.requests * ns(each.call_ms * each.calls);
      sums_.calls[0].in_line_ns += each.requests * ns(each.in_line_ms);
    }
  }

  WaitSums sums_ = first();

  static WaitSums first() {
    WaitSums sums;
    sums.time_ns = 1'000'000'000;
    sums.requests = 1;
    return sums;
  }
};

}  // namespace tacho::scrape
