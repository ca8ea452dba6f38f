#include "kernel/program_kinds.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "base/unique_fd.h"
#include "kernel/kernel_types.h"
#include "kernel/libbpf_options.h"

namespace tacho::kernel {
namespace {

/// A function that kernels have for their own tests of trampolines (net/bpf/test_run.c); nothing else calls it.
constexpr const char* kTestFunction = "bpf_fentry_test1";

/// "r0 = 0; exit"
constexpr std::array kNothing{
    bpf_insn{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .src_reg = 0, .off = 0, .imm = 0},
    bpf_insn{.code = BPF_JMP | BPF_EXIT, .dst_reg = 0, .src_reg = 0, .off = 0, .imm = 0}};

/// A program that does nothing, at a function of the kernel; its errno tells what is wrong with it.
UniqueFd try_to_load(bpf_attach_type type, int function) {
  auto options = libbpf_options<bpf_prog_load_opts>();
  options.expected_attach_type = type;
  options.attach_btf_id = static_cast<__u32>(function);
  return UniqueFd(bpf_prog_load(BPF_PROG_TYPE_TRACING, "tacho_try", "GPL", kNothing.data(), kNothing.size(), &options));
}

/// Linux 6.1 on arm64 loads such programs and attaches none.
std::string try_trampoline() {
  const int function = function_id(kTestFunction);
  if (function <= 0) {
    return {};
  }
  const UniqueFd program = try_to_load(BPF_TRACE_FEXIT, function);
  if (!program) {
    return std::string("this kernel refuses fentry and fexit programs: ") + std::strerror(errno);
  }
  const UniqueFd link(bpf_raw_tracepoint_open(nullptr, program.get()));
  return link ? "" : std::string("this kernel attaches no fentry and fexit programs: ") + std::strerror(errno);
}

/// Over the elements of a map; those over tasks and sockets are another matter.
std::string try_map_iterator() {
  const int function = function_id("bpf_iter_bpf_map_elem");
  if (function <= 0) {
    return "this kernel has no iterators over maps";
  }
  const UniqueFd program = try_to_load(BPF_TRACE_ITER, function);
  return program ? "" : std::string("this kernel refuses iterators over maps: ") + std::strerror(errno);
}

/// libbpf and ReturnProbe attach by the one, or by the other on kernels that lack it.
std::string find_kprobes() {
  for (const char* way : {"/sys/bus/event_source/devices/kprobe/type", "/sys/kernel/tracing/kprobe_events",
                          "/sys/kernel/debug/tracing/kprobe_events"}) {
    if (::access(way, F_OK) == 0) {
      return {};
    }
  }
  return "this kernel has no kprobes (CONFIG_KPROBE_EVENTS), or neither sysfs nor tracefs shows them";
}

}  // namespace

std::string refused_kind(std::string_view section) {
  if (section.starts_with("kprobe/") || section.starts_with("kretprobe/")) {
    static const std::string why = find_kprobes();
    return why;
  }
  if (section == "iter/bpf_map_elem" || section == "iter/bpf_sk_storage_map") {
    static const std::string why = try_map_iterator();
    return why;
  }
  if (!section.starts_with("fentry/") && !section.starts_with("fexit/")) {
    return {};
  }
  static const std::string why = try_trampoline();
  return why;
}

}  // namespace tacho::kernel
