#include "probes/anatomy.h"

#include <sys/syscall.h>

#include <algorithm>
#include <initializer_list>
#include <numeric>
#include <string_view>

#include "metrics/buckets.h"
#include "metrics/entry.h"
#include "probes/bracket.h"
#include "probes/histogram_decode.h"
#include "probes/slow_requests.h"

namespace tacho::probes {
namespace {

using metrics::Family;
using metrics::Sink;
using metrics::Type;
using metrics::Value;

struct AnatomySource {
  const Anatomy& anatomy;
  std::uint64_t requests;
};
using AnatomyEntry = metrics::Entry<AnatomySource>;

std::uint64_t known(const Anatomy::Parts& parts) {
  return std::accumulate(parts.requests.begin(), parts.requests.end(), std::uint64_t{0});
}

void add_parts(const Anatomy::Parts& parts, Sink& out) {
  out.each(parts.ns, [](std::uint64_t ns) { return Value::nanoseconds(static_cast<std::int64_t>(ns)); });
}

/// Who answered what when.
constexpr std::array<std::string_view, 2> kTurns{"receive", "send"};

constexpr std::array kEntries{
    AnatomyEntry{
        Family{"tacho_request_time_seconds_total", Type::counter, "seconds",
               "Time of requests by part. queue: unread in the socket; receive: from the first read to the last; "
               "handover: "
               "read, but the answering thread has not begun; cpu; runqueue: waiting for a CPU; lock: futex and "
               "semaphores; disk; network: in a call on a socket; event: in epoll, poll, select and the like; sleep; "
               "other. The parts add up to the durations of the requests whose mode is known.",
               "part", kPartNames}
            .seen_by(kTurns)
            .on_first_event(),
        [](const AnatomySource& s, Sink& out) { add_parts(s.anatomy.all, out); }},
    AnatomyEntry{
        Family{
            "tacho_request_serving_total", Type::counter, "",
            "Requests by the threads that served them. same_thread: the thread that read it answered it, with no other "
            "request open meanwhile; handed_over: another thread answered it; interleaved: the thread that read it "
            "answered it, with other requests open, so the parts are those of all of these; unknown: not included in "
            "the parts.",
            "mode", kModeNames}
            .seen_by(kTurns)
            .on_first_event(),
        [](const AnatomySource& s, Sink& out) {
          out.each(s.anatomy.all.requests, Value::count);
          const std::uint64_t followed = known(s.anatomy.all);
          out.add(Value::count(s.requests > followed ? s.requests - followed : 0));
        }},
    AnatomyEntry{
        Family{
            "tacho_slow_request_time_seconds_total", Type::counter, "seconds",
            "Time of slow requests by the same parts. A request is slow above `probes.anatomy.slow`, by default above "
            "the target's own p99 of the last minute.",
            "part", kPartNames}
            .seen_by(kTurns)
            .on_first_event(),
        [](const AnatomySource& s, Sink& out) { add_parts(s.anatomy.slow, out); }},
    AnatomyEntry{Family{"tacho_slow_requests_total", Type::counter, "", "Slow requests whose mode is known.", "", {}}
                     .seen_by(kTurns)
                     .on_first_event(),
                 [](const AnatomySource& s, Sink& out) { out.add(Value::count(known(s.anatomy.slow))); }},
    AnatomyEntry{
        Family{"tacho_unrecorded_requests_total",
               Type::counter,
               "",
               "Requests that may have been among the slowest of their minute but were dropped, because the buffer of "
               "records was full.",
               "",
               {}}
            .seen_by(kTurns)
            .on_first_event(),
        [](const AnatomySource& s, Sink& out) { out.add(Value::count(s.anatomy.unrecorded)); }},
    AnatomyEntry{
        Family{
            "tacho_request_handover_seconds",
            Type::histogram,
            "seconds",
            "Time from the last read of a request by one thread to the moment at which the answering thread began: the "
            "queue inside the server.",
            "",
            {}}
            .seen_by(kTurns)
            .with(metrics::Detail::coarse)
            .on_first_event(),
        [](const AnatomySource& s, Sink& out) { out.add(s.anatomy.handover); }},
};

constexpr auto kFamilies = metrics::families_of(kEntries);

constexpr std::uint8_t wait_for(request_part part) {
  return static_cast<std::uint8_t>(part - TACHO_FIRST_WAIT);
}

// Of Linux 5.16 and 6.7, with the same numbers everywhere; the C library may be older.
constexpr int kFutexWaitv = 449;
constexpr int kFutexWait = 455;

}  // namespace

std::array<std::uint8_t, TACHO_SYSCALLS> call_waits() {
  std::array<std::uint8_t, TACHO_SYSCALLS> waits{};
  waits.fill(wait_for(TACHO_PART_OTHER));
  const auto set = [&waits](std::uint8_t wait, std::initializer_list<int> calls) {
    for (const int call : calls) {
      waits.at(static_cast<std::size_t>(call)) = wait;
    }
  };
  set(wait_for(TACHO_PART_LOCK), {SYS_futex, kFutexWaitv, kFutexWait, SYS_semop, SYS_semtimedop});
  set(wait_for(TACHO_PART_DISK),
      {SYS_fsync,   SYS_fdatasync,    SYS_sync,          SYS_syncfs,   SYS_msync,      SYS_sync_file_range,
       SYS_pread64, SYS_pwrite64,     SYS_preadv,        SYS_pwritev,  SYS_preadv2,    SYS_pwritev2,
       SYS_openat,  SYS_fallocate,    SYS_ftruncate,     SYS_truncate, SYS_unlinkat,   SYS_renameat2,
       SYS_mkdirat, SYS_io_getevents, SYS_io_pgetevents, SYS_statx,    SYS_getdents64, SYS_copy_file_range});
  set(wait_for(TACHO_PART_NETWORK), {SYS_recvfrom, SYS_recvmsg, SYS_recvmmsg, SYS_sendto, SYS_sendmsg, SYS_sendmmsg,
                                     SYS_connect, SYS_accept, SYS_accept4});
  set(wait_for(TACHO_PART_EVENT), {SYS_epoll_pwait, SYS_epoll_pwait2, SYS_ppoll, SYS_pselect6, SYS_io_uring_enter,
                                   SYS_rt_sigtimedwait, SYS_rt_sigsuspend, SYS_msgrcv, SYS_mq_timedreceive});
  set(wait_for(TACHO_PART_SLEEP), {SYS_nanosleep, SYS_clock_nanosleep});
  set(TACHO_WAITS_FOR_FILE, {SYS_read, SYS_readv, SYS_write, SYS_writev, SYS_sendfile, SYS_splice});
#ifdef __x86_64__
  // arm64 has only their successors.
  set(wait_for(TACHO_PART_DISK),
      {SYS_open, SYS_creat, SYS_unlink, SYS_rename, SYS_mkdir, SYS_rmdir, SYS_stat, SYS_lstat, SYS_getdents});
  set(wait_for(TACHO_PART_EVENT), {SYS_epoll_wait, SYS_poll, SYS_select, SYS_pause});
#endif
  return waits;
}

void add_shard(Anatomy& anatomy, const socket_shard& shard) {
  for (const bool slow : {false, true}) {
    const request_parts& parts = shard.parts[slow ? 1 : 0];
    const auto add = [&parts](Anatomy::Parts& sum) {
      for (std::size_t i = 0; i < sum.ns.size(); ++i) {
        sum.ns.at(i) += load(parts.ns[i]);
      }
      for (std::size_t i = 0; i < sum.requests.size(); ++i) {
        sum.requests.at(i) += load(parts.requests[i]);
      }
    };
    add(anatomy.all);
    if (slow) {
      add(anatomy.slow);
    }
  }
  add_histogram(anatomy.handover, shard.handover);
}

std::span<const Family> anatomy_families() {
  return kFamilies;
}

void decode(const std::optional<Anatomy>& anatomy, std::uint64_t requests, metrics::Row& row) {
  const Anatomy nothing;
  metrics::append_all(kEntries, {.anatomy = anatomy ? *anatomy : nothing, .requests = anatomy ? requests : 0}, row);
}

std::uint64_t SlowThreshold::update(config::Duration configured, const metrics::FineHistogram& durations,
                                    std::int64_t now_ns) {
  constexpr std::int64_t kHalf = 30'000'000'000;
  constexpr std::uint64_t kFewest = 100;
  constexpr double kQuantile = 0.99;
  if (configured.count() > 0) {
    return static_cast<std::uint64_t>(configured.count());
  }
  if (!past_) {
    if (metrics::total(durations) == 0) {
      return 0;
    }
    past_ = std::make_unique<Past>();
    past_->began_ns = now_ns;
  } else if (now_ns - past_->began_ns >= kHalf) {
    past_->before = past_->current;
    past_->current = durations;
    past_->began_ns = now_ns;
  }
  metrics::FineHistogram recent = durations;
  for (std::size_t i = 0; i < recent.slots.size(); ++i) {
    recent.slots.at(i) -= past_->before.slots.at(i);
  }
  if (metrics::total(recent) < kFewest) {
    return 0;
  }
  return static_cast<std::uint64_t>(metrics::quantile(recent, kQuantile) * 1e9);
}

}  // namespace tacho::probes
