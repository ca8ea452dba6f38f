#include "boundary/readers.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <utility>

namespace tacho::boundary {
namespace {

using namespace std::chrono_literals;

/// Prometheus' own default, for a reader that has been seen once.
constexpr auto kUsualInterval = 60s;
/// Two servers behind one address look like one that reads more often.
constexpr auto kShortest = 10s;
/// Everybody can be a reader.
constexpr std::size_t kMostReaders = 64;
/// Who has come less often has no rhythm yet.
constexpr std::size_t kRhythm = 3;
/// Nothing that scrapes comes more often: a burst is no rhythm.
constexpr auto kShortestInterval = 1s;

double seconds(std::chrono::steady_clock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

}  // namespace

std::chrono::steady_clock::duration Readers::Reader::interval() const {
  return seen == 0 ? kUsualInterval : *std::ranges::max_element(gaps);
}

void Readers::scraped(std::string_view reader, Time now) {
  const std::lock_guard lock(mutex_);
  asked_ = asked_.value_or(now);
  const auto at = readers_.find(reader);
  if (at != readers_.end()) {
    at->second.gaps.at(at->second.seen++ % kGaps) = now - at->second.last;
    at->second.last = now;
    return;
  }
  forget_gone(now);
  if (readers_.size() >= kMostReaders) {
    forget_one();
  }
  readers_.emplace(reader, Reader{.first = now, .last = now});
}

/// Of the address that has most the newest: a client has any number of names, and who has come for long stays.
void Readers::forget_one() {
  std::map<std::string_view, std::size_t> names;
  const auto address = [](std::string_view reader) { return reader.substr(0, reader.find(' ')); };
  for (const auto& [reader, known] : readers_) {
    ++names[address(reader)];
  }
  readers_.erase(std::ranges::max_element(
      readers_, {}, [&](const auto& entry) { return std::pair(names[address(entry.first)], entry.second.first); }));
}

void Readers::forget_gone(Time now) {
  std::erase_if(readers_, [now](const auto& entry) {
    const Reader& reader = entry.second;
    return now - reader.last > std::max<std::chrono::steady_clock::duration>(3 * reader.interval(), 2 * kUsualInterval);
  });
}

Readers::Time Readers::all_have_seen(Time now) {
  const std::lock_guard lock(mutex_);
  forget_gone(now);
  if (readers_.empty()) {
    return Time::min();
  }
  Time seen = now - kShortest;
  for (const auto& [name, reader] : readers_) {
    seen = std::min({seen, now - 2 * reader.interval(), reader.last});
  }
  return seen;
}

Readers::Time Readers::page_begun(Time now) {
  const std::lock_guard lock(mutex_);
  return std::exchange(asked_, std::nullopt).value_or(now);
}

std::optional<std::string> Readers::complaint(std::chrono::steady_clock::duration took) {
  const std::lock_guard lock(mutex_);
  const std::pair<const std::string, Reader>* hurried = nullptr;
  for (const auto& entry : readers_) {
    if (entry.second.seen >= kRhythm && (hurried == nullptr || entry.second.interval() < hurried->second.interval())) {
      hurried = &entry;
    }
  }
  if (hurried == nullptr) {
    return std::nullopt;
  }
  const auto interval = std::max<std::chrono::steady_clock::duration>(hurried->second.interval(), kShortestInterval);
  if (took <= interval) {
    return std::nullopt;
  }
  return fmt::format(
      "a scrape took {:.1f} s, and {} comes every {:.0f} s: it will miss values; give it a longer scrape_interval, or "
      "tacho less to tell (limits.max_targets, targets, probes)",
      seconds(took), hurried->first, seconds(interval));
}

}  // namespace tacho::boundary
