#pragma once

#include <bpf/libbpf.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "kernel/attach_plan.h"
#include "kernel/return_probe.h"

namespace tacho::kernel {

/// An object's bytes, as the skeleton header embeds them.
struct ObjectSource {
  std::string_view name;
  std::span<const std::byte> bytes;
};

/// An object that is open and not yet loaded: for settings that the kernel must not see too late.
class ObjectSetup {
 public:
  ObjectSetup(bpf_object* object, bool preemptible) : object_(object), preemptible_(preemptible) {}

  /// Whether a program that is in use may be interrupted by another one on its CPU.
  [[nodiscard]] bool preemptible() const { return preemptible_; }

  /// Sets a `const volatile` global. The size must be the variable's.
  Result<void> set_constant(std::string_view variable, std::span<const std::byte> value);
  template <class T>
  Result<void> set_constant(std::string_view variable, const T& value) {
    return set_constant(variable, std::as_bytes(std::span(&value, 1)));
  }
  Result<void> set_max_entries(std::string_view map, std::uint32_t entries);
  /// Declares the maps inside an array of maps: mappable arrays.
  Result<void> set_inner_array(std::string_view map, std::size_t value_size, std::uint32_t entries);
  /// Uses another object's map of the same name and shape instead of an own one.
  Result<void> reuse_map(std::string_view map, int descriptor);
  /// The same for every map of another object of the same source, except the map of its constants.
  Result<void> reuse_maps(bpf_object* other);

 private:
  Result<bpf_map*> find(std::string_view map);

  bpf_object* object_;
  bool preemptible_;
  std::vector<UniqueFd> templates_;  // of inner maps, needed until the object is loaded
};

/// A mappable BPF array. The descriptor may be closed once something else holds the map.
Result<UniqueFd> create_mappable_array(const std::string& name, std::size_t value_size, std::uint32_t entries);

/// Options of loading that are the same for all objects.
struct LoadOptions {
  std::string forced_method;  ///< only this attach method is tried; empty: all
  std::string btf_path;       ///< kernel BTF file; empty: the running kernel's own
  bool attach = true;         ///< false: load only, and ask the verifier for its statistics
};

/// A loaded BPF object with its attached programs. Destruction detaches and frees everything.
class BpfObject {
 public:
  using Setup = std::function<Result<void>(ObjectSetup&)>;

  /// Loads the object and attaches its hooks, each by the first alternative that works; iterators are loaded only. A
  /// hook without a working alternative is left out and reported by hooks(). An error is returned only if the object as
  /// a whole cannot be used: its maps, its setup, or every one of its hooks failed.
  static Result<std::unique_ptr<BpfObject>> load(const ObjectSource& source, std::span<const Hook> hooks,
                                                 const LoadOptions& options, const Setup& setup);

  /// Loads more programs of the object's source beside it, with constants of their own and the maps of this one: the
  /// programs that may be interrupted, so that the others need not guard against it. On an error none are loaded.
  Result<void> load_beside(std::span<const Hook> hooks, const LoadOptions& options, const Setup& setup);

  [[nodiscard]] std::string_view name() const { return source_.name; }
  /// Whether one of its programs may be interrupted by another one on its CPU.
  [[nodiscard]] bool preemptible() const { return preemptible_; }
  [[nodiscard]] const std::vector<HookState>& hooks() const { return hooks_; }
  /// Instructions that the verifier processed, by program; only if it was asked (LoadOptions::attach is false).
  [[nodiscard]] const std::map<std::string, std::uint32_t, std::less<>>& verified() const { return verified_; }
  /// Adds a line for something that is not a hook, such as where state is kept.
  void note(HookState state) { hooks_.push_back(std::move(state)); }
  [[nodiscard]] bool attached(std::string_view hook) const;
  /// The method of the alternative that a hook is attached by; "none" if there is none.
  [[nodiscard]] std::string_view method(std::string_view hook) const;
  /// The number of tries to load the object: one, unless a program did not load or attach.
  [[nodiscard]] unsigned tries() const { return tries_; }
  /// Descriptor of a map of the object; −1 if there is none.
  [[nodiscard]] int map(std::string_view map_name) const;
  /// A loaded program, or nullptr.
  [[nodiscard]] const bpf_program* program(std::string_view program_name) const;
  [[nodiscard]] bpf_object* get() const { return object_.get(); }
  /// The object loaded by load_beside(), or nullptr.
  [[nodiscard]] const BpfObject* beside() const { return beside_.get(); }

 private:
  struct ObjectDeleter {
    void operator()(bpf_object* object) const { bpf_object__close(object); }
  };
  struct LinkDeleter {
    void operator()(bpf_link* link) const { bpf_link__destroy(link); }
  };
  BpfObject() = default;
  enum class Try : std::uint8_t { loaded, other_plan, failed };
  /// One try with the possible part of the plan. On failure it rejects the program at fault in the plan, if that is
  /// known.
  Try try_load(AttachPlan& plan, const LoadOptions& options, const Setup& setup, Error& error);
  bool try_attach(AttachPlan& plan);
  Result<void> attach(const bpf_program* program);

  ObjectSource source_;
  std::unique_ptr<bpf_object, ObjectDeleter> object_;
  std::vector<std::unique_ptr<bpf_link, LinkDeleter>> links_;
  std::vector<ReturnProbe> return_probes_;
  std::vector<HookState> hooks_;
  unsigned tries_ = 0;
  bool preemptible_ = false;
  std::map<std::string, std::uint32_t, std::less<>> verified_;
  std::unique_ptr<BpfObject> beside_;
};

}  // namespace tacho::kernel
