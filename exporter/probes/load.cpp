#include "probes/load.h"

#include <algorithm>
#include <array>

namespace tacho::probes {

std::string_view method_name(config::Attach attach) {
  switch (attach) {
    case config::Attach::tracepoint:
      return "tracepoint";
    case config::Attach::fentry:
      return "fentry";
    case config::Attach::kprobe:
      return "kprobe";
    case config::Attach::raw_tracepoint:
      return "raw_tracepoint";
    case config::Attach::scheduler:
      return "scheduler";
    default:
      return "";
  }
}

namespace {

kernel::LoadOptions options_of(const config::ProbeSwitch& probe, const Environment& environment) {
  return {.forced_method = std::string(method_name(probe.attach)),
          .btf_path = environment.btf_path,
          .attach = environment.attach};
}

/// What all probes' objects share, and the object's own.
kernel::BpfObject::Setup whole_setup(const Environment& environment, const kernel::BpfObject::Setup& own) {
  return [&environment, &own](kernel::ObjectSetup& setup) {
    for (const char* map : {"target_rules", "target_settings", "cgroup_targets", "process_targets"}) {
      setup.reuse_map(map, environment.targets->map(map));
    }
    setup.set_constant("cgroup_v1", static_cast<std::uint32_t>(environment.cgroup_v1));
    kernel::set_shards(setup, environment.shards, setup.preemptible());
    own(setup);
  };
}

}  // namespace

void set_up_blocks(kernel::ObjectSetup& setup, std::string_view map, std::size_t shard_size,
                   const Environment& environment) {
  setup.set_max_entries(map, static_cast<std::uint32_t>(environment.indices));
  setup.set_inner_array(map, shard_size, environment.shards.shards());
}

Result<std::unique_ptr<kernel::BpfObject>> load_object(std::span<const kernel::Variant> variants,
                                                       const config::ProbeSwitch& probe, const Environment& environment,
                                                       const kernel::BpfObject::Setup& own) {
  return kernel::load_best(variants, options_of(probe, environment), whole_setup(environment, own));
}

Result<void> load_beside(kernel::BpfObject& object, std::span<const kernel::Hook> hooks,
                         const config::ProbeSwitch& probe, const Environment& environment,
                         const kernel::BpfObject::Setup& own) {
  return object.load_beside(hooks, options_of(probe, environment), whole_setup(environment, own));
}

}  // namespace tacho::probes
