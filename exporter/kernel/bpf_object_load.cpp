#include <bpf/bpf.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <future>
#include <iterator>

#include "base/beside.h"
#include "kernel/at_will.h"
#include "kernel/bpf_log.h"
#include "kernel/bpf_object.h"
#include "kernel/kernel_types.h"
#include "kernel/program_kinds.h"
#include "kernel/unpack.h"

// How an object comes to be loaded and attached, whatever the kernel refuses.

namespace tacho::kernel {
namespace {

/// BPF_LOG_STATS (include/linux/bpf_verifier.h): only the counts at the end.
constexpr __u32 kLogStatistics = 4;

/// Programs that a plan may come to use and the object does not have, as text; empty if it has them all.
std::string unknown_programs(const bpf_object* object, const AttachPlan& plan) {
  std::string unknown;
  for (const std::string_view name : plan.all_programs()) {
    if (bpf_object__find_program_by_name(object, std::string(name).c_str()) == nullptr) {
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

BpfObject::Try BpfObject::try_load(AttachPlan& plan, const Loading& how, Error& error) {
  const LoadOptions& options = how.options;
  const std::string object_name(source_.name);
  bpf_object_open_opts open_options{};
  open_options.sz = sizeof(open_options);
  open_options.object_name = object_name.c_str();
  open_options.btf_custom_path = options.btf_path.empty() ? nullptr : options.btf_path.c_str();
  const BpfLogCapture log;
  object_.reset(bpf_object__open_mem(how.elf.data(), how.elf.size(), &open_options));
  if (!object_) {
    error = Error::from_errno("cannot open BPF object " + object_name, errno);
    return Try::failed;
  }
  if (const auto unknown = unknown_programs(object_.get(), plan); !unknown.empty()) {
    error = {"BPF object " + object_name + " has no program " + unknown, ENOENT};
    return Try::failed;
  }
  const auto reject_all_absent = [&](AttachPlan& of) {
    // What takes the place of a rejected program may have to be rejected, too.
    while (reject_absent(object_.get(), of, options.btf_path)) {
    }
    return std::ranges::any_of(
        of.programs(), [this](std::string_view name) { return is_preemptible(find_program(object_.get(), name)); });
  };
  preemptible_ = reject_all_absent(plan) || how.preemptible;
  for (const Part& part : how.others) {
    preemptible_ = reject_all_absent(*part.plan) || preemptible_;
  }
  if (plan.programs().empty() && how.others.empty()) {
    return Try::other_plan;
  }
  bpf_program* program = nullptr;
  bpf_object__for_each_program(program, object_.get()) {
    bpf_program__set_autoload(program, plan.uses(bpf_program__name(program)));
    bpf_program__set_log_level(program, options.attach ? 0 : kLogStatistics);
  }
  ObjectSetup object_setup(object_.get(), preemptible_);
  if (!kernel_has_types()) {
    // Only the basic variants have it.
    if (auto set = object_setup.try_constant("kernel_types", std::uint32_t{0}); !set) {
      spdlog::debug("{}: {}", object_name, set.error().message);
    }
  }
  how.setup(object_setup);
  if (const auto& ready = object_setup.done(); !ready) {
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

bool BpfObject::all_run_at_will(AttachPlan& plan) {
  for (const std::string_view name : plan.programs()) {
    const bpf_program* program = find_program(object_.get(), name);
    if (program == nullptr || !is_run_at_will(program)) {
      continue;
    }
    if (auto done = try_at_will(program, object_.get()); !done) {
      if (!plan.reject(name, done.error().message)) {
        return false;
      }
      left_out_.emplace(name);
    }
  }
  return true;
}

Result<void> BpfObject::load_programs(AttachPlan& plan, const Loading& how) {
  links_.clear();
  return_probes_.clear();
  attached_.clear();
  object_.reset();
  preemptible_ = false;
  // Every failed try takes one alternative out of the plan, so this ends.
  while (!plan.programs().empty() || !how.others.empty()) {
    Error error;
    const Try tried = try_load(plan, how, error);
    if (tried != Try::other_plan) {
      return tried == Try::loaded ? Result<void>() : std::unexpected(error);
    }
  }
  object_.reset();
  return {};
}

Result<void> BpfObject::load_with_maps(std::span<const std::byte> elf, std::span<const Part> parts,
                                       const LoadOptions& options, const Setup& setup) {
  const auto& [first, plan] = parts.front();
  do {
    if (auto done = first->load_programs(*plan, {elf, options, setup, parts.subspan(1), false}); !done) {
      return done;
    }
    // What is run at will belongs to this part. Now it alone is loaded again.
  } while (options.attach && first->object_ && !first->all_run_at_will(*plan));
  return {};
}

Result<void> BpfObject::load_other(std::span<const std::byte> elf, const Part& part, const BpfObject& first,
                                   const LoadOptions& options, const Setup& setup) {
  const Setup with_its_maps = [&](ObjectSetup& other) {
    setup(other);
    other.reuse_maps(first.get());
  };
  return part.object->load_programs(*part.plan, {elf, options, with_its_maps, {}, first.preemptible_});
}

Result<void> BpfObject::load_others(std::span<const std::byte> elf, std::span<const Part> parts,
                                    const LoadOptions& options, const Setup& setup) {
  const BpfObject& first = *parts.front().object;
  std::vector<std::future<Result<void>>> loading;
  for (const Part& part : parts.subspan(1)) {
    loading.push_back(begin_beside([&] { return load_other(elf, part, first, options, setup); }));
  }
  // All of them end before one is given up.
  Result<void> result;
  for (auto& part : loading) {
    if (auto done = part.get(); !done) {
      result = done;
    }
  }
  return result;
}

Result<void> BpfObject::load_parts(std::span<const std::byte> elf, std::span<const Part> parts,
                                   const LoadOptions& options, const Setup& setup) {
  // Again, if what took a refused program's place may be interrupted: the other parts have to guard against it.
  do {
    if (auto done = load_with_maps(elf, parts, options, setup); !done) {
      return done;
    }
    if (auto done = load_others(elf, parts, options, setup); !done) {
      return done;
    }
  } while (are_interrupted_unawares(parts));
  return {};
}

bool BpfObject::are_interrupted_unawares(std::span<const Part> parts) {
  return !parts.front().object->preemptible_ &&
         std::ranges::any_of(parts, [](const Part& part) { return part.object->preemptible_; });
}

bool BpfObject::try_attach(AttachPlan& plan, std::string_view hook) {
  if (attached_.contains(hook)) {
    return true;
  }
  for (const std::string_view name : plan.programs_of(hook)) {
    const bpf_program* program = find_program(object_.get(), name);
    if (is_run_at_will(program)) {
      continue;
    }
    if (auto done = attach(program); !done && !plan.reject(name, done.error().message)) {
      return false;
    }
  }
  attached_.insert(hook);
  return true;
}

const BpfObject::Part* BpfObject::first_refused(std::span<const Hook> hooks, std::span<const Part> parts) {
  for (const Hook& hook : hooks) {
    for (const Part& part : parts) {
      if (!part.object->try_attach(*part.plan, hook.name)) {
        return &part;
      }
    }
  }
  return nullptr;
}

Result<void> BpfObject::attach_parts(std::span<const std::byte> elf, std::span<const Hook> hooks,
                                     std::span<const Part> parts, const LoadOptions& options, const Setup& setup) {
  // Every round takes one alternative out of a plan, so this ends.
  while (const Part* refused = first_refused(hooks, parts)) {
    auto done = refused == parts.data() ? load_parts(elf, parts, options, setup)
                                        : load_other(elf, *refused, *parts.front().object, options, setup);
    if (done && are_interrupted_unawares(parts)) {
      done = load_parts(elf, parts, options, setup);
    }
    if (!done) {
      return done;
    }
  }
  return {};
}

Result<std::unique_ptr<BpfObject>> BpfObject::load(const ObjectSource& source, std::span<const Hook> hooks,
                                                   const LoadOptions& options, const Setup& setup) {
  const auto elf = unpack(source.bytes);
  if (!elf) {
    return std::unexpected(elf.error().within("BPF object " + std::string(source.name)));
  }
  std::unique_ptr<BpfObject> object(new BpfObject(source));
  std::map<unsigned, std::vector<Hook>> hooks_of;
  for (const Hook& hook : hooks) {
    hooks_of[hook.part].push_back(hook);
  }
  std::vector<std::unique_ptr<AttachPlan>> plans;
  std::vector<Part> parts;
  for (const auto& [number, those] : hooks_of) {
    plans.push_back(std::make_unique<AttachPlan>(those, options.forced_method));
    if (parts.empty()) {
      parts.push_back({object.get(), plans.back().get()});
    } else {
      object->beside_.emplace_back(new BpfObject(source));
      parts.push_back({object->beside_.back().get(), plans.back().get()});
    }
  }
  auto done = load_parts(*elf, parts, options, setup);
  if (done && options.attach) {
    done = attach_parts(*elf, hooks, parts, options, setup);
  }
  if (!done) {
    return std::unexpected(done.error());
  }
  std::string reasons;
  for (const Hook& hook : hooks) {
    for (const Part& part : parts) {
      std::ranges::copy_if(part.plan->states(), std::back_inserter(object->hooks_),
                           [&](const HookState& state) { return state.hook == hook.name; });
    }
    const HookState& state = object->hooks_.back();
    reasons += (reasons.empty() ? "" : "; ") + std::string(state.hook) + ": " + state.error;
  }
  if (std::ranges::all_of(plans, [](const auto& plan) { return plan->programs().empty(); })) {
    return fail("no hook of " + std::string(source.name) + " can be attached: " + reasons, EPERM);
  }
  std::erase_if(object->beside_, [](const auto& part) { return part->get() == nullptr; });
  for (const auto& part : object->beside_) {
    object->verified_.insert(part->verified_.begin(), part->verified_.end());
    if (auto closed = part->close(); !closed) {
      return std::unexpected(closed.error());
    }
  }
  return object;
}

}  // namespace tacho::kernel
