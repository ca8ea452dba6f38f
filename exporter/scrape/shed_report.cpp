#include "scrape/shed_report.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>

#include "base/utf8.h"
#include "bpf/socket.h"
#include "metrics/gain.h"

namespace tacho::scrape {
namespace {

/// Targets that a line of the log names.
constexpr std::size_t kNamed = 8;

constexpr std::array<std::string_view, TACHO_SHED_LEVELS> kShedNames{
    "nothing", "intervals", "polls", "anatomy", "streams of HTTP/2", "turns of most connections"};

constexpr std::array kShedFamilies{metrics::Family{
    "tacho_shed_level",
    metrics::Type::gauge,
    "",
    "What tacho does without for the target now, so that it costs no more than limits.overhead and "
    "limits.machine_overhead. Each level includes those below. 0: nothing. 1: intervals between operations. 2: polls, "
    "and idle time. 3: what requests wait for. 4: requests of HTTP/2 one by one. 5: turns of most of its servers' "
    "connections. Absent until the target has had a "
    "level above 0.",
    "",
    {}}};

std::string without(ShedLevel level) {
  std::string list;
  for (unsigned each = TACHO_SHED_INTERVALS; each <= level; ++each) {
    list += (list.empty() ? "" : ", ") + std::string(kShedNames.at(each));
  }
  return list.empty() ? "nothing" : list;
}

std::string words(const ShedNews& news) {
  const std::string name = printable(news.target);
  if (news.exhausted) {
    return fmt::format("{} still costs too much at level {}", name, static_cast<unsigned>(news.now));
  }
  return fmt::format("{} costs {} and is at level {}: without {}", name,
                     news.now > news.before ? "too much" : "less again", static_cast<unsigned>(news.now),
                     without(news.now));
}

}  // namespace

ShedSeen shed_seen(const probes::TargetSample& sample) {
  ShedSeen seen;
  seen.own = own_time(sample);
  if (sample.sched) {
    seen.cpu_ns = sample.sched->counters.running_ns;
  }
  if (sample.socket) {
    seen.followed = sample.socket->followed;
    seen.anatomy = sample.socket->anatomy.has_value();
    seen.connections = sample.socket->server_connections;
  }
  return seen;
}

ShedInput shed_input(const ShedSeen& from, const ShedSeen& to) {
  ShedInput input;
  std::array<std::uint64_t, std::tuple_size_v<OwnTime>> own{};
  for (std::size_t probe = 0; probe < own.size(); ++probe) {
    own.at(probe) = metrics::gain(from.own.at(probe).value_or(0), to.own.at(probe).value_or(0));
    input.own_ns += own.at(probe);
  }
  if (to.cpu_ns) {
    input.cpu_ns = metrics::gain(from.cpu_ns.value_or(0), *to.cpu_ns);
  }
  const auto& [socket, poll, sched] = own;
  input.helps[TACHO_SHED_INTERVALS] = socket > 0;
  input.helps[TACHO_SHED_POLLS] = poll > 0;
  input.helps[TACHO_SHED_ANATOMY] = to.anatomy;
  input.helps[TACHO_SHED_STREAMS] = to.followed != from.followed;
  input.helps[TACHO_SHED_SOCKETS] = to.connections >= TACHO_CHOSEN_CONNECTIONS;
  return input;
}

std::string shed_line(std::span<const ShedNews> news) {
  std::string line = "limits of tacho's own cost: ";
  for (std::size_t i = 0; i < std::min(news.size(), kNamed); ++i) {
    line += (i > 0 ? "; " : "") + words(news[i]);
  }
  if (news.size() > kNamed) {
    line += fmt::format("; and {} more targets", news.size() - kNamed);
  }
  return line;
}

std::span<const metrics::Family> shed_families() {
  return kShedFamilies;
}

}  // namespace tacho::scrape
