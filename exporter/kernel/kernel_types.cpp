#include "kernel/kernel_types.h"

#include <bpf/btf.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <span>

#include "kernel/trials.h"

namespace tacho::kernel {
namespace {

struct BtfDeleter {
  void operator()(btf* types) const { btf__free(types); }
};

constexpr const char* kOwnTypes = "/sys/kernel/btf/vmlinux";
constexpr const char* kSymbols = "/proc/kallsyms";

/// By path, read once: a kernel's types are five megabytes. Objects are loaded by several threads.
struct KnownTypes {
  std::mutex mutex;
  std::map<std::string, std::unique_ptr<btf, BtfDeleter>> by_path;
};

KnownTypes& known_types() {
  static KnownTypes known;
  return known;
}

const btf* types_of(const std::string& path) {
  KnownTypes& known = known_types();
  const std::lock_guard lock(known.mutex);
  const auto found = known.by_path.find(path);
  if (found != known.by_path.end()) {
    return found->second.get();
  }
  std::unique_ptr<btf, BtfDeleter> types(path.empty() ? btf__load_vmlinux_btf() : btf__parse(path.c_str(), nullptr));
  if (!types && is_passing(errno)) {
    return nullptr;  // the next one tries again
  }
  return known.by_path.emplace(path, std::move(types)).first->second.get();
}

/// Families of sockets may be modules, whose types are apart.
bool may_be_in_module() {
  return ::access("/sys/kernel/btf/unix", F_OK) == 0 || ::access("/sys/kernel/btf/ipv6", F_OK) == 0;
}

/// Programs of kprobes are attached by symbol. Not every symbol has a type, and reading them all takes a tenth of a
/// second: a function that has one exists.
bool has_function(const std::string& name, const std::string& btf_path) {
  const btf* types = types_of(btf_path);
  if (types == nullptr || btf__find_by_name_kind(types, name.c_str(), BTF_KIND_FUNC) >= 0) {
    return true;
  }
  static std::mutex mutex;
  static std::map<std::string, bool> known;
  const std::lock_guard lock(mutex);
  const auto found = known.find(name);
  if (found != known.end()) {
    return found->second;
  }
  std::ifstream symbols(kSymbols);
  return known.emplace(name, has_symbol(name, symbols)).first->second;
}

}  // namespace

bool has_symbol(std::string_view name, std::istream& symbols) {
  bool any = false;
  // "ADDRESS KIND NAME", and of modules "\t[MODULE]"
  for (std::string address, kind, symbol, rest; symbols >> address >> kind >> symbol; any = true) {
    if (symbol == name) {
      return true;
    }
    std::getline(symbols, rest);
  }
  return !any;
}

bool kernel_has_types() {
  return ::access(kOwnTypes, F_OK) == 0;
}

bool has_types(const std::string& btf_path) {
  return types_of(btf_path) != nullptr;
}

std::string absent_target(std::string_view section, const std::string& btf_path) {
  const auto slash = section.find('/');
  const std::string_view kind = section.substr(0, slash);
  const std::string target(slash == std::string_view::npos ? "" : section.substr(slash + 1));
  // A file of types helps libbpf to find members; the kernel checks these programs by its own types.
  const bool by_type = kind == "tp_btf" || kind == "fentry" || kind == "fexit" || kind == "iter";
  if (by_type && !kernel_has_types()) {
    return "this kernel has no type information of its own (" + std::string(kOwnTypes) + ")";
  }
  if (kind == "kprobe" || kind == "kretprobe") {
    return has_function(target, btf_path) ? "" : "this kernel has no function " + target;
  }
  const btf* types = kind == "tp_btf" || kind == "fentry" || kind == "fexit" ? types_of(btf_path) : nullptr;
  if (types == nullptr) {
    return {};
  }
  if (kind == "tp_btf") {
    return btf__find_by_name_kind(types, ("btf_trace_" + target).c_str(), BTF_KIND_TYPEDEF) < 0
               ? "this kernel has no tracepoint " + target
               : "";
  }
  return btf__find_by_name_kind(types, target.c_str(), BTF_KIND_FUNC) < 0 && !may_be_in_module()
             ? "this kernel has no function " + target
             : "";
}

bool has_preemptible_tracepoints() {
  const btf* types = types_of({});
  return types != nullptr && btf__find_by_name_kind(types, "class_srcu_fast_notrace_t", BTF_KIND_TYPEDEF) >= 0;
}

bool has_member(const std::string& structure, std::string_view member, const std::string& btf_path) {
  const btf* types = types_of(btf_path);
  const int id = types != nullptr ? btf__find_by_name_kind(types, structure.c_str(), BTF_KIND_STRUCT) : -1;
  if (id < 0) {
    return false;
  }
  const btf_type* type = btf__type_by_id(types, static_cast<__u32>(id));
  const std::span members(btf_members(type), btf_vlen(type));
  return std::ranges::any_of(members,
                             [&](const btf_member& m) { return member == btf__name_by_offset(types, m.name_off); });
}

bool has_safe_task_storage(const std::string& btf_path) {
  return has_member("bpf_local_storage_map", "selem_ma", btf_path) ||
         has_member("bpf_local_storage_map", "use_kmalloc_nolock", btf_path);
}

namespace {

/// A type of the running kernel; negative: -ENOENT, or the passing error that kept its types from being read.
int type_id(const std::string& name, __u32 kind) {
  errno = 0;
  const btf* types = types_of({});
  if (types == nullptr) {
    return is_passing(errno) ? -errno : -ENOENT;
  }
  return btf__find_by_name_kind(types, name.c_str(), kind);
}

}  // namespace

int function_id(const std::string& function) {
  return type_id(function, BTF_KIND_FUNC);
}

int tracepoint_id(const std::string& tracepoint) {
  return type_id("btf_trace_" + tracepoint, BTF_KIND_TYPEDEF);
}

void forget_types() {
  known_types().by_path.clear();
}

}  // namespace tacho::kernel
