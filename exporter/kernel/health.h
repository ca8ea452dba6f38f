#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernel/attach_plan.h"
#include "kernel/statistics.h"

namespace tacho::kernel {

/// The state of a loaded object: plain data.
struct ObjectHealth {
  std::string_view name;
  std::vector<HookState> hooks;
  std::vector<ProgramStatistics> programs;
  std::vector<std::uint64_t> lost;  ///< events, by reason (bpf/lib/loss.h); empty: cannot be read
  std::string lost_error{};         ///< why not
  std::vector<MapFill> maps;        ///< those that can be read
};

/// Returns the current state of an object. The fill of its maps is read only on request, because the maps are walked
/// for it.
using HealthSource = std::function<ObjectHealth(bool with_maps)>;

/// @param object lives as long as the source
/// @param maps whose fill is reported
HealthSource health_of(const BpfObject& object, std::span<const std::string_view> maps);

}  // namespace tacho::kernel
