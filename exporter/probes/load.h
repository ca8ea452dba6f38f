#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "kernel/variants.h"
#include "probes/probe.h"

namespace tacho::probes {

/// Loads a probe's object with the shared look-up maps and the shard layout.
Result<std::unique_ptr<kernel::BpfObject>> load_object(std::span<const kernel::Variant> variants,
                                                       const config::ProbeSwitch& probe, const Environment& environment,
                                                       const kernel::BpfObject::Setup& own);

/// Loads more programs of it beside, see BpfObject::load_beside().
Result<void> load_beside(kernel::BpfObject& object, std::span<const kernel::Hook> hooks,
                         const config::ProbeSwitch& probe, const Environment& environment,
                         const kernel::BpfObject::Setup& own);

/// Sizes an array of blocks: one per target index, one element per shard.
void set_up_blocks(kernel::ObjectSetup& setup, std::string_view map, std::size_t shard_size,
                   const Environment& environment);

/// Name of an attach method as hooks spell it; empty for automatic.
std::string_view method_name(config::Attach attach);

}  // namespace tacho::probes
