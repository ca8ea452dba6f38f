#include "config/limit_keys.h"

#include "config/types.h"

namespace tacho::config {
namespace {

constexpr Percent kLeastBudget{1};
constexpr Percent kWhole{100 * 100};

}  // namespace

Type<Limits> limit_keys() {
  return section<Limits>({
      restart_key("max_targets", &Limits::max_targets, integer(1U, 10'000U, "a number"),
                  "Targets watched at the same time; the rest is summed up in the target `other` and counted."),
      restart_key("max_peers", &Limits::max_peers, integer(1U, 1024U, "a number"),
                  "Dependencies told apart per target; the rest is summed up in the peer `other`."),
      key("overhead", &Limits::overhead, or_word("none", percent(kLeastBudget, kWhole)),
          "What tacho's programs may cost a target, as a share of the target's own CPU time. Where they take more, "
          "tacho does without a part of what it tells of that target until they take less: in this order intervals "
          "between operations, polls, anatomy, streams of HTTP/2 one by one, turns of most connections; "
          "`tacho_shed_level` "
          "says which. Requests are counted one by one up to the third level. The costs are an estimate "
          "(`tacho_overhead_seconds_total`), and what stays below a thousandth of a CPU is never shed for. Needs the "
          "probe `sched`: without it the target's CPU time is not known, and this limit does nothing."),
      key("machine_overhead", &Limits::machine_overhead, or_word("none", percent(kLeastBudget, kWhole)),
          "The same for all targets together, as a share of the time of all CPUs that are online. Where it is "
          "exceeded, "
          "the targets that cost most lose something first. Needs no probe `sched`."),
  });
}

}  // namespace tacho::config
