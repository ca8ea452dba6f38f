#include "kernel/program_kinds.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>

#include "base/result.h"
#include "base/unique_fd.h"
#include "kernel/kernel_types.h"
#include "kernel/libbpf_options.h"
#include "kernel/trials.h"

namespace tacho::kernel {
namespace {

/// A function that kernels have for their own tests of trampolines (net/bpf/test_run.c); nothing else calls it.
constexpr const char* kTestFunction = "bpf_fentry_test1";

/// "r0 = 0; exit"
constexpr std::array kNothing{
    bpf_insn{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .src_reg = 0, .off = 0, .imm = 0},
    bpf_insn{.code = BPF_JMP | BPF_EXIT, .dst_reg = 0, .src_reg = 0, .off = 0, .imm = 0}};

/// A program that does nothing, at something that the kernel has a type of; its errno tells what is wrong with it.
UniqueFd try_to_load(bpf_attach_type type, int target) {
  auto options = libbpf_options<bpf_prog_load_opts>();
  options.expected_attach_type = type;
  options.attach_btf_id = static_cast<__u32>(target);
  return UniqueFd(bpf_prog_load(BPF_PROG_TYPE_TRACING, "tacho_try", "GPL", kNothing.data(), kNothing.size(), &options));
}

/// @param id of a type that was not found
Result<void> unless_passing(int id) {
  return is_passing(-id) ? fail("the kernel's types cannot be read now", -id) : Result<void>();
}

/// Linux 6.1 on arm64 loads such programs and attaches none.
Result<void> try_trampoline() {
  const int function = function_id(kTestFunction);
  if (function <= 0) {
    return unless_passing(function);
  }
  const UniqueFd program = try_to_load(BPF_TRACE_FEXIT, function);
  if (!program) {
    return fail_errno("this kernel refuses fentry and fexit programs");
  }
  const UniqueFd link(bpf_raw_tracepoint_open(nullptr, program.get()));
  return link ? Result<void>() : fail_errno("this kernel attaches no fentry and fexit programs");
}

/// @param name of a tracepoint that the kernel has
Result<void> try_typed_tracepoint(std::string_view name) {
  const int type = tracepoint_id(std::string(name));
  if (type <= 0) {
    return unless_passing(type);
  }
  const UniqueFd program = try_to_load(BPF_TRACE_RAW_TP, type);
  return program ? Result<void>() : fail_errno("this kernel refuses programs of typed tracepoints");
}

Result<void> try_raw_tracepoint() {
  const UniqueFd program(
      bpf_prog_load(BPF_PROG_TYPE_RAW_TRACEPOINT, "tacho_try", "GPL", kNothing.data(), kNothing.size(), nullptr));
  return program ? Result<void>() : fail_errno("this kernel refuses programs of raw tracepoints");
}

/// @param what such as "task", or "bpf_map_elem" for all that have a map to go over
Result<void> try_iterators(const std::string& what) {
  const std::string kind = "iterators over " + (what == "bpf_map_elem" ? "maps" : what);
  const int function = function_id("bpf_iter_" + what);
  if (function <= 0) {
    return fail("this kernel has no " + kind, is_passing(-function) ? -function : ENOENT);
  }
  const UniqueFd program = try_to_load(BPF_TRACE_ITER, function);
  if (!program) {
    return fail_errno("this kernel refuses " + kind);
  }
  bpf_iter_link_info over{};
  auto options = libbpf_options<bpf_link_create_opts>();
  UniqueFd map;
  if (what == "bpf_map_elem") {
    map = UniqueFd(
        bpf_map_create(BPF_MAP_TYPE_HASH, "tacho_try", sizeof(std::uint64_t), sizeof(std::uint64_t), 1, nullptr));
    if (!map) {
      return {};
    }
    over.map.map_fd = static_cast<__u32>(map.get());
    options.iter_info = &over;
    options.iter_info_len = sizeof(over);
  }
  const UniqueFd link(bpf_link_create(program.get(), 0, BPF_TRACE_ITER, &options));
  if (!link) {
    // Some want to be told more than a trial knows.
    return errno == EINVAL ? Result<void>() : fail_errno("this kernel attaches no " + kind);
  }
  const UniqueFd iterator(bpf_iter_create(link.get()));
  return iterator ? Result<void>() : fail_errno("this kernel starts no " + kind);
}

/// libbpf and ReturnProbe attach by the one, or by the other on kernels that lack it.
Result<void> find_kprobes() {
  for (const char* way : {"/sys/bus/event_source/devices/kprobe/type", "/sys/kernel/tracing/kprobe_events",
                          "/sys/kernel/debug/tracing/kprobe_events"}) {
    if (::access(way, F_OK) == 0) {
      return {};
    }
  }
  return fail("this kernel has no kprobes (CONFIG_KPROBE_EVENTS), or neither sysfs nor tracefs shows them", ENOENT);
}

}  // namespace

std::string refused_kind(std::string_view section) {
  static Trials trials;
  const auto slash = section.find('/');
  const std::string_view kind = section.substr(0, slash);
  const std::string_view target = slash == std::string_view::npos ? "" : section.substr(slash + 1);
  if (kind == "kprobe" || kind == "kretprobe") {
    return trials.refused("kprobe", find_kprobes);
  }
  if (kind == "fentry" || kind == "fexit") {
    return trials.refused("fentry", try_trampoline);
  }
  if (kind == "tp_btf") {
    return trials.refused("tp_btf", [target] { return try_typed_tracepoint(target); });
  }
  if (kind == "raw_tp") {
    return trials.refused("raw_tp", try_raw_tracepoint);
  }
  if (kind == "iter") {
    const std::string what(target == "bpf_sk_storage_map" ? "bpf_map_elem" : target);
    return trials.refused("iter/" + what, [&what] { return try_iterators(what); });
  }
  return {};
}

}  // namespace tacho::kernel
