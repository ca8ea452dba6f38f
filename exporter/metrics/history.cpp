#include "metrics/history.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "metrics/gain.h"

namespace tacho::metrics {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
constexpr double kShareSteps = 250;
constexpr std::uint8_t kNoShare = 255;
constexpr double kShortest = 0x1p-20;  // seconds; all shorter durations are one slot of the histogram
constexpr double kStepsPerOctave = 64;
constexpr std::uint16_t kLongest = 2 + TACHO_HISTOGRAM_OCTAVES * 64;
constexpr double kCountSteps = 8;  // per doubling of a number in a heat column

std::uint16_t pack_duration(double seconds) {
  if (std::isnan(seconds)) {
    return 0;
  }
  const double step = std::round(std::log2(std::max(seconds, kShortest) / kShortest) * kStepsPerOctave);
  return static_cast<std::uint16_t>(std::min<double>(step + 1, kLongest));
}

double unpack_duration(std::uint16_t code) {
  return code == 0 ? kNone : kShortest * std::exp2((code - 1) / kStepsPerOctave);
}

std::uint8_t pack_share(double share) {
  return std::isnan(share) ? kNoShare : static_cast<std::uint8_t>(std::round(share * kShareSteps));
}

double unpack_share(std::uint8_t code) {
  return code == kNoShare ? kNone : code / kShareSteps;
}

std::uint8_t pack_count(std::uint32_t count) {
  const double step = std::round(std::log2(static_cast<double>(count) + 1) * kCountSteps);
  return static_cast<std::uint8_t>(std::min(step, 255.0));
}

std::uint32_t unpack_count(std::uint8_t code) {
  return static_cast<std::uint32_t>(std::round(std::exp2(code / kCountSteps) - 1));
}

double share(double part, double whole) {
  return whole > 0 ? std::clamp(part / whole, 0.0, 1.0) : kNone;
}

constexpr std::size_t heat_row(std::size_t fine_slot) {
  return (fine_slot + FineHistogram::kPerOctave - 1) / FineHistogram::kPerOctave;
}
static_assert(heat_row(TACHO_HISTOGRAM_FINE_SLOTS - 1) == kHeatRows - 1);

void set_quantiles(Reading& reading, const FineHistogram& durations) {
  reading.p50 = quantile(durations, 0.5);
  reading.p99 = quantile(durations, 0.99);
}

}  // namespace

History::Point History::pack(const Reading& reading) {
  return {.rate = static_cast<float>(reading.rate),
          .p50 = pack_duration(reading.p50),
          .p99 = pack_duration(reading.p99),
          .queue = pack_share(reading.queue_share),
          .idle = pack_share(reading.idle_share)};
}

Reading History::unpack(const Point& point) {
  return {.rate = point.rate,
          .p50 = unpack_duration(point.p50),
          .p99 = unpack_duration(point.p99),
          .queue_share = unpack_share(point.queue),
          .idle_share = unpack_share(point.idle)};
}

Reading History::between(const Sums& older, const Sums& newer) const {
  const auto elapsed = static_cast<double>(newer.time_ns - older.time_ns);
  Reading reading{.rate = 0, .p50 = kNone, .p99 = kNone, .queue_share = kNone, .idle_share = kNone};
  if (elapsed <= 0) {
    return reading;
  }
  reading.rate = static_cast<double>(gain(older.requests, newer.requests)) * kNanosecondsPerSecond / elapsed;
  if (sees_queue_) {
    reading.queue_share = share(static_cast<double>(gain(older.queue_ns, newer.queue_ns)),
                                static_cast<double>(gain(older.duration_ns, newer.duration_ns)));
  }
  reading.idle_share =
      share(static_cast<double>(gain(older.idle_ns, newer.idle_ns)), elapsed * static_cast<double>(threads_));
  return reading;
}

HistorySample History::part_way(const HistorySample& sample, double part) const {
  const Sums& before = sums_.at(tick_ % sums_.size());
  const auto along = [part](auto from, auto to) {
    return to > from ? from + static_cast<decltype(from)>(std::llround(part * static_cast<double>(to - from))) : to;
  };
  HistorySample between;
  between.time_ns = along(before.time_ns, sample.time_ns);
  between.queue_ns = along(before.queue_ns, sample.queue_ns);
  between.idle_ns = along(before.idle_ns, sample.idle_ns);
  between.threads = sample.threads;
  between.sees_queue = sample.sees_queue;
  between.duration.sum_ns = along(before.duration_ns, sample.duration.sum_ns);
  for (std::size_t slot = 0; slot < sample.duration.slots.size(); ++slot) {
    const std::uint64_t had = requests_ ? requests_->previous.slots.at(slot) : 0;
    between.duration.slots.at(slot) = along(had, sample.duration.slots.at(slot));
  }
  return between;
}

void History::push(std::uint64_t tick, const HistorySample& sample) {
  while (pushes_ > 0 && tick_ + 1 < tick) {
    // Of a longer pause only what is still shown.
    const std::uint64_t next = std::max(tick_ + 1, tick - std::min<std::uint64_t>(tick, kPoints));
    push_one(next, part_way(sample, static_cast<double>(next - tick_) / static_cast<double>(tick - tick_)));
  }
  push_one(tick, sample);
}

void History::push_one(std::uint64_t tick, const HistorySample& sample) {
  const Sums before = sums_.at(tick_ % sums_.size());
  const bool first = pushes_ == 0;
  tick_ = tick;
  pushes_ = std::min(pushes_ + 1, sums_.size());
  threads_ = sample.threads;
  sees_queue_ = sample.sees_queue;
  const Sums now{.time_ns = sample.time_ns,
                 .requests = total(sample.duration),
                 .duration_ns = sample.duration.sum_ns,
                 .queue_ns = sample.queue_ns,
                 .idle_ns = sample.idle_ns};
  sums_.at(tick % sums_.size()) = now;
  if (!requests_ && now.requests > 0) {
    requests_ = std::make_unique<Requests>();
    requests_->first_tick = tick;
  }
  if (requests_) {
    add(tick, sample, first ? now : before);
  }
}

void History::add(std::uint64_t tick, const HistorySample& sample, const Sums& before) {
  Requests& r = *requests_;
  if (tick % kColumnTicks == 0 && tick != r.first_tick) {
    auto& sealed = r.columns.at((tick / kColumnTicks - 1) % kColumns);
    std::ranges::transform(r.column, sealed.begin(), pack_count);
    r.column.fill(0);
  }
  std::vector<Gain>& gained = r.gained.at(tick % kRecent);
  for (const Gain& old : gained) {
    r.recent.slots.at(old.slot) -= old.count;
  }
  gained.clear();
  FineHistogram second;
  for (std::size_t slot = 0; slot < second.slots.size(); ++slot) {
    const std::uint64_t more = gain(r.previous.slots.at(slot), sample.duration.slots.at(slot));
    if (more == 0) {
      continue;
    }
    const auto count = static_cast<std::uint32_t>(more);
    gained.push_back({static_cast<std::uint16_t>(slot), count});
    second.slots.at(slot) = count;
    r.recent.slots.at(slot) += count;
    r.column.at(heat_row(slot)) += count;
  }
  r.previous = sample.duration;
  Reading reading = between(before, sums_.at(tick % sums_.size()));
  set_quantiles(reading, second);
  r.points.at(tick % kPoints) = pack(reading);
}

Reading History::since_ticks(std::size_t ticks) const {
  const std::size_t back = std::min(ticks, pushes_ > 0 ? pushes_ - 1 : 0);
  return between(sums_.at((tick_ + sums_.size() - back) % sums_.size()), sums_.at(tick_ % sums_.size()));
}

double History::recent_rate() const {
  return since_ticks(kRecent).rate;
}

Reading History::recent() const {
  Reading reading = since_ticks(kRecent);
  if (requests_) {
    set_quantiles(reading, requests_->recent);
  }
  return reading;
}

FineHistogram History::recent_durations() const {
  return requests_ ? requests_->recent : FineHistogram{};
}

std::vector<Reading> History::points(std::uint64_t since, std::uint64_t until) const {
  std::vector<Reading> list;
  if (!requests_) {
    return list;
  }
  const std::uint64_t oldest = tick_ >= kPoints ? tick_ - kPoints : 0;
  for (std::uint64_t tick = std::max({since + 1, oldest + 1, requests_->first_tick}); tick <= std::min(tick_, until);
       ++tick) {
    list.push_back(unpack(requests_->points.at(tick % kPoints)));
  }
  return list;
}

Reading History::last() const {
  return requests_ ? unpack(requests_->points.at(tick_ % kPoints)) : since_ticks(1);
}

std::vector<HeatColumn> History::columns(std::uint64_t since, std::uint64_t until) const {
  std::vector<HeatColumn> list;
  if (!requests_ || requests_->first_tick > until) {
    return list;
  }
  const std::uint64_t now = tick_ / kColumnTicks;
  const std::uint64_t last = std::min(tick_, until) / kColumnTicks;
  const std::uint64_t oldest = now >= kColumns ? now - kColumns + 1 : 0;
  const std::uint64_t first = std::max({since / kColumnTicks, oldest, requests_->first_tick / kColumnTicks});
  for (std::uint64_t column = std::min(first, last); column <= last; ++column) {
    if (column == now) {
      list.push_back(requests_->column);
    } else {
      std::ranges::transform(requests_->columns.at(column % kColumns), list.emplace_back().begin(), unpack_count);
    }
  }
  return list;
}

std::size_t History::memory() const {
  if (!requests_) {
    return 0;
  }
  std::size_t gains = 0;
  for (const std::vector<Gain>& gained : requests_->gained) {
    gains += gained.capacity();
  }
  return sizeof(Requests) + gains * sizeof(Gain);
}

}  // namespace tacho::metrics
