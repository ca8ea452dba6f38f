#include "scrape/readers.h"

#include <algorithm>

namespace tacho::scrape {
namespace {

using namespace std::chrono_literals;

/// Prometheus' own default, for a reader that has been seen once.
constexpr auto kUsualInterval = 60s;
/// Two servers behind one address look like one that reads more often.
constexpr auto kShortest = 10s;
/// Everybody can be a reader: those who came last are remembered.
constexpr std::size_t kMostReaders = 64;

}  // namespace

std::chrono::steady_clock::duration Readers::Reader::interval() const {
  return seen == 0 ? kUsualInterval : *std::ranges::max_element(gaps);
}

void Readers::scraped(std::string_view reader, Time now) {
  const std::lock_guard lock(mutex_);
  const auto at = readers_.find(reader);
  if (at != readers_.end()) {
    at->second.gaps.at(at->second.seen++ % kGaps) = now - at->second.last;
    at->second.last = now;
    return;
  }
  forget_gone(now);
  if (readers_.size() >= kMostReaders) {
    readers_.erase(
        std::ranges::min_element(readers_, {}, [](const auto& entry) -> const Time& { return entry.second.last; }));
  }
  readers_.emplace(reader, Reader{.last = now});
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

}  // namespace tacho::scrape
