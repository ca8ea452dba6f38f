#pragma once

#include <bpf/libbpf.h>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "kernel/attach_plan.h"
#include "kernel/object_setup.h"
#include "kernel/return_probe.h"

namespace tacho::kernel {

/// An object's bytes, compressed (xz) or as they are; they live as long as the program.
struct ObjectSource {
  std::string_view name;
  std::span<const std::byte> bytes;
};

/// Options of loading that are the same for all objects.
struct LoadOptions {
  std::string forced_method;  ///< only this attach method is tried; empty: all
  std::string btf_path;       ///< kernel BTF file; empty: the running kernel's own
  bool attach = true;         ///< false: load only, and ask the verifier for its statistics
};

/// A loaded BPF object with its attached programs. Destruction detaches and frees everything.
class BpfObject {
 public:
  /// What makes the settings of an object. It returns nothing: an error that it returned would be lost (ObjectSetup has
  /// it), and std::function would let it.
  class Setup : public std::function<void(ObjectSetup&)> {
   public:
    template <std::invocable<ObjectSetup&> Maker>
      requires std::is_void_v<std::invoke_result_t<Maker&, ObjectSetup&>>
    Setup(Maker maker) : std::function<void(ObjectSetup&)>(std::move(maker)) {}
  };

  /// Loads the object and attaches its hooks, each by the first alternative that works; iterators are started only. A
  /// hook without a working alternative is left out and reported by hooks(). An error is returned only if the object as
  /// a whole cannot be used: its maps, its setup, or every one of its hooks failed. Then nothing is left attached.
  ///
  /// Hooks of several parts (Hook::part) become several objects of the same source: the lowest part has the maps and is
  /// loaded first, then the others at the same time, each by a thread that ends before this returns. If the kernel
  /// refuses a program, or to attach it, its part alone is loaded again; that of the lowest part with all others, which
  /// use its maps. Hooks are attached in their order when all are loaded.
  /// @param setup called for each part, by several threads
  static Result<std::unique_ptr<BpfObject>> load(const ObjectSource& source, std::span<const Hook> hooks,
                                                 const LoadOptions& options, const Setup& setup);

  /// Loads more programs of the object's source beside it, with constants of their own and the maps of this one: the
  /// programs that may be interrupted, so that the others need not guard against it. On an error none are loaded.
  Result<void> load_beside(std::span<const Hook> hooks, const LoadOptions& options, const Setup& setup);

  [[nodiscard]] std::string_view name() const { return source_.name; }
  [[nodiscard]] const std::vector<HookState>& hooks() const { return hooks_; }
  /// Instructions that the verifier processed, by program; only if it was asked (LoadOptions::attach is false).
  [[nodiscard]] const std::map<std::string, std::uint32_t, std::less<>>& verified() const { return verified_; }
  /// Adds a line for something that is not a hook, such as where state is kept.
  void note(HookState state) { hooks_.push_back(std::move(state)); }
  [[nodiscard]] bool attached(std::string_view hook) const { return method(hook) != "none"; }
  /// Whether it is one of the object's hooks, and not attached.
  [[nodiscard]] bool lacks(std::string_view hook) const;
  /// The method of the alternative that a hook is attached by; "none" if there is none.
  [[nodiscard]] std::string_view method(std::string_view hook) const;
  /// The number of tries to load the part that took the most: one, unless a program did not load or attach.
  [[nodiscard]] unsigned tries() const;
  /// Descriptor of a map of the object; −1 if there is none.
  [[nodiscard]] int map(std::string_view map_name) const;
  /// A loaded program of the part with the maps, or nullptr: what is run at will belongs there.
  [[nodiscard]] const bpf_program* program(std::string_view program_name) const;
  [[nodiscard]] bpf_object* get() const { return object_.get(); }
  /// All loaded programs, also those of the other parts and of load_beside(): name and descriptor.
  [[nodiscard]] std::vector<std::pair<std::string, int>> loaded_programs() const;

 private:
  struct ObjectDeleter {
    void operator()(bpf_object* object) const { bpf_object__close(object); }
  };
  struct LinkDeleter {
    void operator()(bpf_link* link) const { bpf_link__destroy(link); }
  };
  /// The hooks that are loaded together.
  struct Part {
    BpfObject* object;
    AttachPlan* plan;
  };
  explicit BpfObject(const ObjectSource& source) : source_(source) {}
  /// How one part is loaded.
  struct Loading {
    std::span<const std::byte> elf;
    const LoadOptions& options;
    const Setup& setup;
    std::span<const Part> others;  ///< that use its maps, so that it is loaded without a program, too
    bool preemptible;              ///< whether a program of another part may be interrupted
  };
  static Result<void> load_parts(std::span<const std::byte> elf, std::span<const Part> parts,
                                 const LoadOptions& options, const Setup& setup);
  /// Loads the first programs of the plan that load; no object if there is nothing to load.
  Result<void> load_programs(AttachPlan& plan, const Loading& how);
  enum class Try : std::uint8_t { loaded, other_plan, failed };
  /// One try with the possible part of the plan. On failure it rejects the program at fault in the plan, if that is
  /// known.
  Try try_load(AttachPlan& plan, const Loading& how, Error& error);
  /// Loads the part with the maps, until what is run at will would run.
  static Result<void> load_with_maps(std::span<const std::byte> elf, std::span<const Part> parts,
                                     const LoadOptions& options, const Setup& setup);
  /// Loads another part.
  static Result<void> load_other(std::span<const std::byte> elf, const Part& part, const BpfObject& first,
                                 const LoadOptions& options, const Setup& setup);
  /// Loads all other parts at the same time.
  static Result<void> load_others(std::span<const std::byte> elf, std::span<const Part> parts,
                                  const LoadOptions& options, const Setup& setup);
  /// Whether a program may be interrupted, and the part with the maps was loaded when none might.
  static bool are_interrupted_unawares(std::span<const Part> parts);
  /// Attaches all parts, and loads a part again of which a program is rejected.
  static Result<void> attach_parts(std::span<const std::byte> elf, std::span<const Hook> hooks,
                                   std::span<const Part> parts, const LoadOptions& options, const Setup& setup);
  /// Attaches hook by hook what is not attached yet. @return the part that is to be loaded again; nullptr: none is
  static const Part* first_refused(std::span<const Hook> hooks, std::span<const Part> parts);
  bool try_attach(AttachPlan& plan, std::string_view hook);
  /// @return false if a program was rejected: the part is to be loaded again
  bool all_run_at_will(AttachPlan& plan);
  static bpf_program* find_program(const bpf_object* object, std::string_view name);
  /// Gives back what libbpf keeps of a part that is loaded and attached: two megabytes a copy of the largest object.
  Result<void> close();
  Result<void> attach(const bpf_program* program);

  ObjectSource source_;
  std::unique_ptr<bpf_object, ObjectDeleter> object_;
  std::vector<std::unique_ptr<bpf_link, LinkDeleter>> links_;
  std::vector<ReturnProbe> return_probes_;
  std::set<std::string_view> attached_;          // hooks
  std::set<std::string, std::less<>> left_out_;  // programs that are loaded, and that the kernel does not run
  std::vector<HookState> hooks_;
  unsigned tries_ = 0;
  bool preemptible_ = false;
  std::map<std::string, std::uint32_t, std::less<>> verified_;
  std::vector<std::unique_ptr<BpfObject>> beside_;          // the other parts, and what load_beside() has loaded
  std::vector<std::pair<std::string, UniqueFd>> programs_;  // of a part whose libbpf object is closed
};

}  // namespace tacho::kernel
