#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tacho::kernel {

/// One method to observe an event: its name, as users see it, and its programs.
struct Alternative {
  std::string_view method;                     ///< "tp_btf", "fentry", "tracepoint", "raw_tracepoint", "kprobe"
  std::span<const std::string_view> programs;  ///< must all load and attach, in this order (exits before enters)
  /// Attached afterwards and left out where they cannot be: functions that not every kernel has.
  std::span<const std::string_view> optional = {};
};

/// An event that a probe observes, with its methods in order of preference.
struct Hook {
  std::string_view name;
  std::span<const Alternative> alternatives;
  /// Hooks of one part are loaded one after the other, parts at the same time (BpfObject::load). What takes the
  /// verifier long has a part of its own; the lowest part is loaded before the others and should be short.
  unsigned part = 0;
};

/// The result for a hook.
struct HookState {
  std::string_view hook;
  std::string_view method;  ///< of the alternative in use; "none" if all failed
  std::string error;        ///< why better ones failed, empty if the first was taken
  [[nodiscard]] bool attached() const { return method != "none"; }
};

/// The alternative in use of each hook. A rejected one is replaced by the next.
class AttachPlan {
 public:
  /// @param forced only this method is tried where a hook knows it; "tracepoint" is also "tp_btf"; empty: all
  AttachPlan(std::span<const Hook> hooks, std::string_view forced);

  /// Whether the program belongs to an alternative that is in use.
  [[nodiscard]] bool uses(std::string_view program) const;
  /// The programs in use, hook by hook, in the order in which to attach them.
  [[nodiscard]] std::vector<std::string_view> programs() const;
  /// Those of one hook; empty if it is none of this plan's.
  [[nodiscard]] std::vector<std::string_view> programs_of(std::string_view hook) const;
  /// The programs of all alternatives, also of those that are ruled out.
  [[nodiscard]] std::vector<std::string_view> all_programs() const;
  /// The program failed: leaves it out if it is optional, else takes the next alternative of its hook.
  /// @return whether it was only left out
  bool reject(std::string_view program, const std::string& why);
  /// Whether any hook knows the method that is forced; true if none is.
  [[nodiscard]] bool offers_forced() const;

  [[nodiscard]] std::vector<HookState> states() const;

 private:
  struct Choice {
    const Hook* hook;
    std::size_t alternative;
    std::string error;
    std::vector<std::string_view> left_out;  ///< optional programs
    [[nodiscard]] const Alternative* current() const;
    /// Programs of the current alternative that are in use.
    [[nodiscard]] std::vector<std::string_view> programs() const;
  };
  void skip_unwanted(Choice& choice) const;
  [[nodiscard]] bool is_forced(const Alternative& alternative) const;
  [[nodiscard]] bool offers_forced(const Hook& hook) const;

  std::string forced_;
  std::vector<Choice> choices_;
};

}  // namespace tacho::kernel
