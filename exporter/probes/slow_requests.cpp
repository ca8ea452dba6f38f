#include "probes/slow_requests.h"

#include <spdlog/fmt/fmt.h>
#include <sys/socket.h>

#include <algorithm>
#include <iterator>
#include <span>

namespace tacho::probes {
namespace {

bool is_slower(const request_record& a, const request_record& b) {
  return a.duration > b.duration;
}

}  // namespace

const std::array<std::string_view, TACHO_PARTS> kPartNames{"queue", "receive", "handover", "cpu",   "runqueue", "lock",
                                                           "disk",  "network", "event",    "sleep", "other"};
const std::array<std::string_view, TACHO_SERVING_MODES + 1> kModeNames{"same_thread", "handed_over", "interleaved",
                                                                       "unknown"};

SlowRequest decode(const request_record& record, const PeerNames& names, const peer_address* longest_peer) {
  SlowRequest request{.ended_ns = static_cast<std::int64_t>(record.ended),
                      .duration_ns = record.duration,
                      .parts_ns = {},
                      .mode = kModeNames.at(std::min<std::size_t>(record.mode, TACHO_SERVING_MODES)),
                      .client = {},
                      .thread_name = {},
                      .thread = record.thread,
                      .bytes = record.bytes,
                      .reply_bytes = record.reply,
                      .calls = record.calls,
                      .calls_ns = record.calls_ns,
                      .longest_call_ns = record.longest_call_ns,
                      .longest_call_peer = {}};
  std::ranges::copy(record.ns, request.parts_ns.begin());
  const std::string_view name(&record.thread_name[0], sizeof(record.thread_name));
  request.thread_name = name.substr(0, name.find('\0'));
  if (record.family == AF_INET || record.family == AF_INET6) {
    peer_address client{.family = record.family, .port = record.port, .address = {}};
    std::ranges::copy(record.address, std::begin(client.address));
    request.client = names.of(client);
  }
  if (record.calls > 0) {
    request.longest_call_peer = names.of(longest_peer == nullptr ? peer_address{} : *longest_peer);
  }
  return request;
}

metrics::Exemplar exemplar(const request_record& record) {
  const std::span parts(record.ns);
  const auto most = std::ranges::max_element(parts);
  const double share = record.duration == 0 ? 0 : static_cast<double>(*most) / static_cast<double>(record.duration);
  return {.fine = 0,
          .ns = record.duration,
          .time_ns = static_cast<std::int64_t>(record.ended),
          .labels = {{"part", std::string(kPartNames.at(static_cast<std::size_t>(most - parts.begin())))},
                     {"share", fmt::format("{:.2f}", share)}}};
}

void SlowRequests::add(const request_record& record) {
  const std::int64_t number = minute_of(static_cast<std::int64_t>(record.ended));
  auto minute = std::ranges::lower_bound(minutes_, number, {}, &Minute::number);
  if (minute == minutes_.end() || minute->number != number) {
    minute = minutes_.insert(minute, Minute{.number = number, .kept = {}});
  }
  if (minute->kept.size() == kKept) {
    if (!is_slower(record, minute->kept.front())) {
      return;
    }
    std::ranges::pop_heap(minute->kept, is_slower);
    minute->kept.pop_back();
  }
  minute->kept.push_back(record);
  std::ranges::push_heap(minute->kept, is_slower);
  forget(minutes_.back().number);
}

std::uint64_t SlowRequests::threshold(std::int64_t now_ns) const {
  const auto minute = std::ranges::find(minutes_, minute_of(now_ns), &Minute::number);
  const bool full = minute != minutes_.end() && minute->kept.size() == kKept;
  return full ? std::max<std::uint64_t>(minute->kept.front().duration, 1) : 1;
}

std::vector<request_record> SlowRequests::slowest(std::int64_t now_ns) {
  forget(minute_of(now_ns));
  std::vector<request_record> all;
  for (const Minute& minute : minutes_) {
    all.insert(all.end(), minute.kept.begin(), minute.kept.end());
  }
  std::ranges::stable_sort(all, is_slower);
  return all;
}

std::vector<const request_record*> SlowRequests::recent(std::int64_t now_ns) const {
  std::vector<const request_record*> all;
  for (const Minute& minute : minutes_) {
    if (minute.number + 1 >= minute_of(now_ns)) {
      std::ranges::transform(minute.kept, std::back_inserter(all), [](const request_record& kept) { return &kept; });
    }
  }
  return all;
}

void SlowRequests::forget(std::int64_t before) {
  while (!minutes_.empty() && minutes_.front().number < before - kMinutes) {
    minutes_.pop_front();
  }
}

}  // namespace tacho::probes
