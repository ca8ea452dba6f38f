#include "kernel/bpf_object.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <spdlog/spdlog.h>

#include <algorithm>

#include "kernel/bpf_log.h"
#include "kernel/kernel_types.h"
#include "kernel/program_kinds.h"

namespace tacho::kernel {
namespace {

/// BPF_LOG_STATS (include/linux/bpf_verifier.h): only the counts at the end.
constexpr __u32 kLogStatistics = 4;

/// Run by user space when it wants what they find: iterators, and programs that are handed keys (run_over_keys).
bool is_run_at_will(const bpf_program* program) {
  const std::string_view section = bpf_program__section_name(program);
  return section.starts_with("iter/") || section == "raw_tp";
}

bpf_program* find_program(const bpf_object* object, std::string_view name) {
  return bpf_object__find_program_by_name(object, std::string(name).c_str());
}

/// Programs that a plan may come to use and the object does not have, as text; empty if it has them all.
std::string unknown_programs(const bpf_object* object, const AttachPlan& plan) {
  std::string unknown;
  for (const std::string_view name : plan.all_programs()) {
    if (find_program(object, name) == nullptr) {
      unknown += (unknown.empty() ? "" : ", ") + std::string(name);
    }
  }
  return unknown;
}

/// Trampolines only keep a program on its CPU; kprobes and, on most kernels, tracepoints also keep others off it.
bool is_preemptible(const bpf_program* program) {
  const std::string_view section = program != nullptr ? bpf_program__section_name(program) : "";
  const bool tracepoint = section.starts_with("tp_btf/") || section.starts_with("raw_tp/");
  // The scheduler's lie where interrupts are disabled.
  const bool scheduler = section.contains("/sched_switch") || section.contains("/sched_wakeup");
  return section.starts_with("fentry/") || section.starts_with("fexit/") ||
         (tracepoint && !scheduler && has_preemptible_tracepoints());
}

/// The program that a message of libbpf ("prog 'NAME': …") is about.
std::string culprit_of(const std::string& message) {
  constexpr std::string_view kMark = "prog '";
  const auto begin = message.find(kMark);
  if (begin == std::string::npos) {
    return {};
  }
  const auto end = message.find('\'', begin + kMark.size());
  return message.substr(begin + kMark.size(), end - begin - kMark.size());
}

/// Takes programs out of the plan whose tracepoint or function the kernel does not have, or whose kind it refuses.
/// @return whether there were any
bool reject_absent(const bpf_object* object, AttachPlan& plan, const std::string& btf_path) {
  bool any = false;
  bpf_program* program = nullptr;
  bpf_object__for_each_program(program, object) {
    if (!plan.uses(bpf_program__name(program))) {
      continue;
    }
    const std::string_view section = bpf_program__section_name(program);
    std::string why = absent_target(section, btf_path);
    if (why.empty()) {
      why = refused_kind(section);
    }
    if (!why.empty()) {
      plan.reject(bpf_program__name(program), why);
      any = true;
    }
  }
  return any;
}

}  // namespace

Result<bpf_map*> ObjectSetup::find(std::string_view map) {
  bpf_map* found = bpf_object__find_map_by_name(object_, std::string(map).c_str());
  if (found == nullptr) {
    return fail("the BPF object has no map " + std::string(map));
  }
  return found;
}

Result<void> ObjectSetup::set_constant(std::string_view variable, std::span<const std::byte> value) {
  const btf* types = bpf_object__btf(object_);
  const int section_id = types != nullptr ? btf__find_by_name_kind(types, ".rodata", BTF_KIND_DATASEC) : -1;
  bpf_map* rodata = nullptr;
  bpf_map* map = nullptr;
  bpf_object__for_each_map(map, object_) {
    if (std::string_view(bpf_map__name(map)).ends_with(".rodata")) {
      rodata = map;
    }
  }
  if (section_id < 0 || rodata == nullptr) {
    return fail("the BPF object has no constants");
  }
  std::size_t size = 0;
  const auto* initial = static_cast<const std::byte*>(bpf_map__initial_value(rodata, &size));
  std::vector<std::byte> data(initial, initial + size);
  const btf_type* section = btf__type_by_id(types, static_cast<__u32>(section_id));
  for (__u32 i = 0; i < btf_vlen(section); ++i) {
    const btf_var_secinfo& info = btf_var_secinfos(section)[i];
    const btf_type* type = btf__type_by_id(types, info.type);
    if (variable != btf__name_by_offset(types, type->name_off)) {
      continue;
    }
    if (info.size != value.size() || info.offset + info.size > size) {
      return fail("BPF constant " + std::string(variable) + " has another size");
    }
    std::ranges::copy(value, data.begin() + info.offset);
    const int error = bpf_map__set_initial_value(rodata, data.data(), data.size());
    return error != 0 ? Result<void>(fail_errno("cannot set BPF constant " + std::string(variable), -error))
                      : Result<void>();
  }
  return fail("the BPF object has no constant " + std::string(variable));
}

Result<void> ObjectSetup::set_max_entries(std::string_view map, std::uint32_t entries) {
  auto found = find(map);
  if (!found) {
    return std::unexpected(found.error());
  }
  const int error = bpf_map__set_max_entries(*found, entries);
  return error != 0 ? Result<void>(fail_errno("cannot size map " + std::string(map), -error)) : Result<void>();
}

Result<UniqueFd> create_mappable_array(const std::string& name, std::size_t value_size, std::uint32_t entries) {
  bpf_map_create_opts options{};
  options.sz = sizeof(options);
  options.map_flags = BPF_F_MMAPABLE;
  UniqueFd map(bpf_map_create(BPF_MAP_TYPE_ARRAY, name.c_str(), sizeof(std::uint32_t), static_cast<__u32>(value_size),
                              entries, &options));
  if (!map) {
    return fail_errno("cannot create BPF array " + name);
  }
  return map;
}

Result<void> ObjectSetup::set_inner_array(std::string_view map, std::size_t value_size, std::uint32_t entries) {
  auto found = find(map);
  if (!found) {
    return std::unexpected(found.error());
  }
  // libbpf 1.1 crashes when the size of an inner map that the object declares is set.
  auto model = create_mappable_array("template", value_size, entries);
  if (!model) {
    return std::unexpected(model.error());
  }
  const int error = bpf_map__set_inner_map_fd(*found, model->get());
  templates_.push_back(std::move(*model));
  return error != 0 ? Result<void>(fail_errno("cannot set the shape of the maps in " + std::string(map), -error))
                    : Result<void>();
}

Result<void> ObjectSetup::reuse_map(std::string_view map, int descriptor) {
  auto found = find(map);
  if (!found) {
    return std::unexpected(found.error());
  }
  const int error = bpf_map__reuse_fd(*found, descriptor);
  return error != 0 ? Result<void>(fail_errno("cannot share map " + std::string(map), -error)) : Result<void>();
}

Result<void> ObjectSetup::reuse_maps(bpf_object* other) {
  bpf_map* map = nullptr;
  bpf_object__for_each_map(map, other) {
    if (bpf_map__is_internal(map)) {
      continue;
    }
    if (auto done = reuse_map(bpf_map__name(map), bpf_map__fd(map)); !done) {
      return done;
    }
  }
  return {};
}

BpfObject::Try BpfObject::try_load(AttachPlan& plan, const LoadOptions& options, const Setup& setup, Error& error) {
  links_.clear();
  return_probes_.clear();
  const std::string object_name(source_.name);
  bpf_object_open_opts open_options{};
  open_options.sz = sizeof(open_options);
  open_options.object_name = object_name.c_str();
  open_options.btf_custom_path = options.btf_path.empty() ? nullptr : options.btf_path.c_str();
  const BpfLogCapture log;
  object_.reset(bpf_object__open_mem(source_.bytes.data(), source_.bytes.size(), &open_options));
  if (!object_) {
    error = Error::from_errno("cannot open BPF object " + object_name, errno);
    return Try::failed;
  }
  if (const auto unknown = unknown_programs(object_.get(), plan); !unknown.empty()) {
    error = {"BPF object " + object_name + " has no program " + unknown, ENOENT};
    return Try::failed;
  }
  // What takes the place of a rejected program may have to be rejected, too.
  while (reject_absent(object_.get(), plan, options.btf_path)) {
  }
  if (plan.programs().empty()) {
    return Try::other_plan;
  }
  bpf_program* program = nullptr;
  bpf_object__for_each_program(program, object_.get()) {
    bpf_program__set_autoload(program, plan.uses(bpf_program__name(program)));
    bpf_program__set_log_level(program, options.attach ? 0 : kLogStatistics);
  }
  preemptible_ = std::ranges::any_of(
      plan.programs(), [this](std::string_view name) { return is_preemptible(find_program(object_.get(), name)); });
  ObjectSetup object_setup(object_.get(), preemptible_);
  if (!kernel_has_types()) {
    // Only the basic variants have it.
    if (auto set = object_setup.set_constant("kernel_types", std::uint32_t{0}); !set) {
      spdlog::debug("{}: {}", object_name, set.error().message);
    }
  }
  if (auto ready = setup(object_setup); !ready) {
    error = ready.error();
    return Try::failed;
  }
  ++tries_;
  const int status = bpf_object__load(object_.get());
  if (status == 0) {
    verified_ = log.verified();
    return Try::loaded;
  }
  error = Error::from_errno("cannot load BPF object " + object_name, -status);
  const std::string why = log.summary();
  if (!why.empty()) {
    error.message += " [" + why + "]";
  }
  const std::string culprit = culprit_of(why);
  if (culprit.empty() || !plan.uses(culprit)) {
    return Try::failed;
  }
  plan.reject(culprit, why);
  return Try::other_plan;
}

Result<void> BpfObject::attach(const bpf_program* program) {
  if (std::string_view(bpf_program__section_name(program)).starts_with("kretprobe/")) {
    auto probe = ReturnProbe::attach(program);
    if (!probe) {
      return std::unexpected(probe.error());
    }
    return_probes_.push_back(std::move(*probe));
    return {};
  }
  const BpfLogCapture log;
  bpf_link* link = bpf_program__attach(program);
  if (link == nullptr) {
    const int error = errno;
    const std::string why = log.summary();
    return why.empty() ? Result<void>(fail_errno("cannot attach", error)) : Result<void>(fail(why, error));
  }
  links_.emplace_back(link);
  return {};
}

bool BpfObject::try_attach(AttachPlan& plan) {
  for (const std::string_view name : plan.programs()) {
    const bpf_program* program = find_program(object_.get(), name);
    if (is_run_at_will(program)) {
      continue;
    }
    if (auto done = attach(program); !done && !plan.reject(name, done.error().message)) {
      return false;
    }
  }
  return true;
}

Result<std::unique_ptr<BpfObject>> BpfObject::load(const ObjectSource& source, std::span<const Hook> hooks,
                                                   const LoadOptions& options, const Setup& setup) {
  std::unique_ptr<BpfObject> object(new BpfObject);
  object->source_ = source;
  AttachPlan plan(hooks, options.forced_method);
  // Every failed try takes one alternative out of the plan, so this ends.
  while (!plan.programs().empty()) {
    Error error;
    const Try tried = object->try_load(plan, options, setup, error);
    if (tried == Try::failed) {
      return std::unexpected(error);
    }
    if (tried == Try::loaded && (!options.attach || object->try_attach(plan))) {
      object->hooks_ = plan.states();
      return object;
    }
  }
  std::string reasons;
  for (const HookState& state : plan.states()) {
    reasons += (reasons.empty() ? "" : "; ") + std::string(state.hook) + ": " + state.error;
  }
  return fail("no hook of " + std::string(source.name) + " can be attached: " + reasons, EPERM);
}

Result<void> BpfObject::load_beside(std::span<const Hook> hooks, const LoadOptions& options, const Setup& setup) {
  auto loaded = load(source_, hooks, options, [&](ObjectSetup& other) -> Result<void> {
    auto done = setup(other);
    return done ? other.reuse_maps(object_.get()) : done;
  });
  if (!loaded) {
    return std::unexpected(loaded.error());
  }
  if (options.attach && (*loaded)->links_.empty()) {
    return fail("the kernel refuses every one of them", EPERM);
  }
  beside_ = std::move(*loaded);
  return {};
}

bool BpfObject::attached(std::string_view hook) const {
  return method(hook) != "none";
}

std::string_view BpfObject::method(std::string_view hook) const {
  const auto found = std::ranges::find(hooks_, hook, &HookState::hook);
  return found != hooks_.end() ? found->method : "none";
}

int BpfObject::map(std::string_view map_name) const {
  return bpf_object__find_map_fd_by_name(object_.get(), std::string(map_name).c_str());
}

const bpf_program* BpfObject::program(std::string_view program_name) const {
  const bpf_program* found = find_program(object_.get(), program_name);
  return found != nullptr && bpf_program__fd(found) >= 0 ? found : nullptr;
}

}  // namespace tacho::kernel
