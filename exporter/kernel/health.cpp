#include "kernel/health.h"

#include <string>

namespace tacho::kernel {

HealthSource health_of(const BpfObject& object, std::span<const std::string_view> maps) {
  return [&object, maps](bool with_maps) {
    auto lost = lost_events(object);
    ObjectHealth health{.name = object.name(),
                        .hooks = object.hooks(),
                        .programs = program_statistics(object),
                        .lost = lost.value_or(std::vector<std::uint64_t>{}),
                        .lost_error = lost ? "" : lost.error().message,
                        .maps = {}};
    for (const std::string_view map : with_maps ? maps : std::span<const std::string_view>{}) {
      if (auto fill = map_fill(object, std::string(map))) {
        health.maps.push_back(std::move(*fill));
      }
    }
    return health;
  };
}

}  // namespace tacho::kernel
