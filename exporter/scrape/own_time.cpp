#include "scrape/own_time.h"

#include <string_view>

namespace tacho::scrape {
namespace {

using metrics::Family;
using metrics::Type;
using metrics::Value;

constexpr std::array<std::string_view, std::tuple_size_v<OwnTime>> kTimedProbes{"socket", "poll", "sched"};

constexpr std::array kOverheadFamilies{Family{
    "tacho_overhead_seconds_total", Type::counter, "seconds",
    "CPU time that tacho's programs took for events of the target, by probe. An estimate: one event in 256 is timed, "
    "from "
    "where its target is known to the end. The kernel's way into a program, which other tasks pay as well, is not part "
    "of it.",
    "probe", kTimedProbes}};

}  // namespace

OwnTime own_time(const probes::TargetSample& sample) {
  const auto of = [](const auto& part) { return part.own_ns; };
  return {sample.socket.transform(of), sample.poll.transform(of), sample.sched.transform(of)};
}

std::span<const Family> overhead_families() {
  return kOverheadFamilies;
}

metrics::Row overhead_row(const OwnTime& time) {
  metrics::Row row;
  for (const auto& ns : time) {
    row.values.push_back(ns ? Value::nanoseconds(static_cast<std::int64_t>(*ns)) : Value::absent());
  }
  return row;
}

}  // namespace tacho::scrape
