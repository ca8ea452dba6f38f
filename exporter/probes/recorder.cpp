#include "probes/recorder.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "probes/bracket.h"

namespace tacho::probes {

Recorder::Recorder(std::size_t indices, std::int64_t minute_ns)
    : minute_ns_(minute_ns), slowest_(indices, SlowRequests(minute_ns)) {}

void Recorder::open(const kernel::BpfObject& object) {
  auto ring = kernel::RingBuffer::open<request_record>(object, "slow_records",
                                                       [this](const request_record& record) { add(record); });
  if (ring) {
    records_ = std::move(*ring);
  } else {
    spdlog::error("the slowest requests are not recorded: {}", ring.error().message);
  }
}

void Recorder::add(const request_record& record) {
  if (record.target < slowest_.size()) {
    slowest_[record.target].add(record);
  }
}

void Recorder::take() {
  const std::lock_guard lock(mutex_);
  take_locked();
}

void Recorder::take_locked() {
  if (records_) {
    records_->consume();
  }
}

void Recorder::forget(std::uint32_t index) {
  const std::lock_guard lock(mutex_);
  take_locked();  // of the one that had the index before
  slowest_.at(index) = SlowRequests(minute_ns_);
}

void Recorder::start(socket_chains& chains) {
  chains.record = {.ns = {1, 1}, .minute = 0, .begins = 0};
}

void Recorder::set_threshold(std::uint32_t index, std::int64_t now_ns, socket_chains& chains) {
  record_thresholds& record = chains.record;
  const auto length = static_cast<std::uint64_t>(minute_ns_);
  const std::uint64_t end = (static_cast<std::uint64_t>(now_ns) / length + 1) * length;
  const std::uint64_t before = load(record.minute);
  std::uint64_t current = before & 1;
  if ((before & ~std::uint64_t{1}) != end) {
    current ^= 1;
    if ((before & ~std::uint64_t{1}) + length != end) {
      // Nobody has looked for more than a minute: the programs took all that came since for the next one.
      __atomic_store_n(&record.ns[current], 1, __ATOMIC_RELAXED);
    }
    __atomic_store_n(&record.begins, end - length, __ATOMIC_RELAXED);
    __atomic_store_n(&record.minute, end | current, __ATOMIC_RELEASE);
  }
  const std::lock_guard lock(mutex_);
  const std::uint64_t kept = slowest_.at(index).threshold(now_ns);
  __atomic_store_n(&record.ns[current], std::max(kept, load(record.ns[current])), __ATOMIC_RELAXED);
  // Each time: a program may still have been at a request of the last minute when this one began.
  __atomic_store_n(&record.ns[current ^ 1], 1, __ATOMIC_RELAXED);
}

std::vector<request_record> Recorder::slowest(std::uint32_t index, std::int64_t now_ns) {
  const std::lock_guard lock(mutex_);
  take_locked();
  return slowest_.at(index).slowest(now_ns);
}

std::vector<metrics::Exemplar> Recorder::exemplars(std::uint32_t index, std::int64_t now_ns) {
  std::vector<request_record> records;
  {
    const std::lock_guard lock(mutex_);
    take_locked();
    for (const request_record* record : slowest_.at(index).recent(now_ns)) {
      records.push_back(*record);
    }
  }
  std::vector<metrics::Exemplar> all;
  all.reserve(records.size());
  std::ranges::transform(records, std::back_inserter(all), exemplar);
  return all;
}

}  // namespace tacho::probes
