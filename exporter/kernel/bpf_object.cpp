#include "kernel/bpf_object.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <fcntl.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <future>
#include <iterator>

#include "base/beside.h"
#include "kernel/bpf_log.h"
#include "kernel/kernel_types.h"
#include "kernel/program_kinds.h"
#include "kernel/unpack.h"

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

bool BpfObject::try_attach(AttachPlan& plan, std::span<const std::string_view> programs) {
  for (const std::string_view name : programs) {
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

Result<void> BpfObject::load_programs(AttachPlan& plan, const Loading& how) {
  links_.clear();
  return_probes_.clear();
  object_.reset();
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

Result<void> BpfObject::load_parts(std::span<const std::byte> elf, std::span<const Part> parts,
                                   const LoadOptions& options, const Setup& setup) {
  const BpfObject& first = *parts.front().object;
  const auto others = parts.subspan(1);
  if (auto done = parts.front().object->load_programs(*parts.front().plan, {elf, options, setup, others, false});
      !done) {
    return done;
  }
  const Setup with_its_maps = [&](ObjectSetup& other) {
    setup(other);
    other.reuse_maps(first.get());
  };
  std::vector<std::future<Result<void>>> loading;
  for (const Part& part : others) {
    loading.push_back(begin_beside([&, part] {
      return part.object->load_programs(*part.plan, {elf, options, with_its_maps, {}, first.preemptible_});
    }));
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

bool BpfObject::try_attach(std::span<const Hook> hooks, std::span<const Part> parts) {
  return std::ranges::all_of(hooks, [&](const Hook& hook) {
    return std::ranges::all_of(parts, [&](const Part& part) {
      return part.object->try_attach(*part.plan, part.plan->programs_of(hook.name));
    });
  });
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
  do {
    if (auto done = load_parts(*elf, parts, options, setup); !done) {
      return std::unexpected(done.error());
    }
  } while (options.attach && !try_attach(hooks, parts));
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
    if (auto done = part->close(); !done) {
      return std::unexpected(done.error());
    }
  }
  return object;
}

Result<void> BpfObject::load_beside(std::span<const Hook> hooks, const LoadOptions& options, const Setup& setup) {
  auto loaded = load(source_, hooks, options, [&](ObjectSetup& other) {
    setup(other);
    other.reuse_maps(object_.get());
  });
  if (!loaded) {
    return std::unexpected(loaded.error());
  }
  if (options.attach && (*loaded)->links_.empty()) {
    return fail("the kernel refuses every one of them", EPERM);
  }
  verified_.insert((*loaded)->verified_.begin(), (*loaded)->verified_.end());
  beside_.push_back(std::move(*loaded));
  return beside_.back()->close();
}

unsigned BpfObject::tries() const {
  unsigned most = tries_;
  for (const auto& part : beside_) {
    most = std::max(most, part->tries());
  }
  return most;
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

std::vector<std::pair<std::string, int>> BpfObject::loaded_programs() const {
  std::vector<std::pair<std::string, int>> all;
  bpf_program* program = nullptr;
  for (program = object_ ? bpf_object__next_program(object_.get(), nullptr) : nullptr; program != nullptr;
       program = bpf_object__next_program(object_.get(), program)) {
    if (bpf_program__fd(program) >= 0) {
      all.emplace_back(bpf_program__name(program), bpf_program__fd(program));
    }
  }
  for (const auto& [name, descriptor] : programs_) {
    all.emplace_back(name, descriptor.get());
  }
  for (const auto& part : beside_) {
    std::ranges::move(part->loaded_programs(), std::back_inserter(all));
  }
  return all;
}

Result<void> BpfObject::close() {
  for (const auto& [name, descriptor] : loaded_programs()) {
    UniqueFd copy(::fcntl(descriptor, F_DUPFD_CLOEXEC, 0));
    if (!copy) {
      return fail_errno("cannot keep program " + name);
    }
    programs_.emplace_back(name, std::move(copy));
  }
  object_.reset();
  return {};
}

}  // namespace tacho::kernel
