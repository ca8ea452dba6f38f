#include "probes/registry.h"

#include <array>

namespace tacho::probes {
namespace {

constexpr Entry::Threads threads_of(std::string_view name) {
  return name == "sched" ? Entry::Threads::kept : name == "socket" ? Entry::Threads::read : Entry::Threads::unused;
}

#define TACHO_ENTRY(name, title, ...)                                                                  \
  Entry{#name,                                                                                         \
        title " (probe `" #name "`)",                                                                  \
        name##_families,                                                                               \
        [](const config::Config& config) -> const config::ProbeSwitch& { return config.probes.name; }, \
        name##_variants,                                                                               \
        load_##name##_probe,                                                                           \
        threads_of(#name)},
constexpr std::array kRegistry{TACHO_PROBES(TACHO_ENTRY)};
#undef TACHO_ENTRY

}  // namespace

std::span<const Entry> registry() {
  return kRegistry;
}

}  // namespace tacho::probes
