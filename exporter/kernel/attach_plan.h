#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tacho::kernel {

/// One way to observe an event: a method's name as users see it and the programs that must all load and attach.
struct Alternative {
  std::string_view method;                     ///< "tp_btf", "fentry", "tracepoint", "raw_tracepoint", "kprobe"
  std::span<const std::string_view> programs;  ///< attached in this order (exits before enters)
};

/// An event that a probe wants to see, with the ways to do so in order of preference.
struct Hook {
  std::string_view name;
  std::span<const Alternative> alternatives;
};

/// What became of a hook.
struct HookState {
  std::string_view hook;
  std::string_view method;  ///< of the alternative in use; "none" if all failed
  std::string error;        ///< why better ones failed, empty if the first was taken
  [[nodiscard]] bool attached() const { return method != "none"; }
};

/// Which alternative of each hook is in use, and moving on when one turns out not to work.
class AttachPlan {
 public:
  /// @param forced only this method is tried; empty: all
  AttachPlan(std::span<const Hook> hooks, std::string_view forced);

  /// Whether the program belongs to an alternative that is in use.
  [[nodiscard]] bool uses(std::string_view program) const;
  /// The programs in use, hook by hook, in the order in which to attach them.
  [[nodiscard]] std::vector<std::string_view> programs() const;
  /// The alternative that uses the program failed: takes the hook's next one.
  void reject(std::string_view program, const std::string& why);

  [[nodiscard]] std::vector<HookState> states() const;

 private:
  struct Choice {
    const Hook* hook;
    std::size_t alternative;
    std::string error;
    [[nodiscard]] const Alternative* current() const;
  };
  void skip_unwanted(Choice& choice) const;

  std::string forced_;
  std::vector<Choice> choices_;
};

}  // namespace tacho::kernel
