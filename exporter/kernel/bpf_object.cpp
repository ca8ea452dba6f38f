#include "kernel/bpf_object.h"

#include <bpf/bpf.h>
#include <fcntl.h>

#include <algorithm>
#include <iterator>

#include "kernel/bpf_log.h"

namespace tacho::kernel {

bpf_program* BpfObject::find_program(const bpf_object* object, std::string_view name) {
  return bpf_object__find_program_by_name(object, std::string(name).c_str());
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

bool BpfObject::lacks(std::string_view hook) const {
  const auto found = std::ranges::find(hooks_, hook, &HookState::hook);
  return found != hooks_.end() && !found->attached();
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
  return found != nullptr && bpf_program__fd(found) >= 0 && !left_out_.contains(program_name) ? found : nullptr;
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
