#pragma once

#include <bpf/libbpf.h>

#include <string>

#include "base/result.h"

namespace tacho::kernel {

/// A return probe for many concurrent calls.
///
/// The kernel preallocates places for calls in progress and loses the returns of further calls: as many places as CPUs
/// on 5.10, ten or twice the CPUs later. Every thread of the machine that waits in a receive takes one, so they are
/// used up at once. Only the event files of tracefs accept a larger number.
class ReturnProbe {
 public:
  ReturnProbe() = default;
  ReturnProbe(ReturnProbe&& other) noexcept;
  ReturnProbe& operator=(ReturnProbe&& other) noexcept;
  ReturnProbe(const ReturnProbe&) = delete;
  ReturnProbe& operator=(const ReturnProbe&) = delete;
  /// Detaches and removes the event. A killed process leaves a line in kprobe_events that has no effect; the next tacho
  /// removes it.
  ~ReturnProbe();

  /// @param program of a section "kretprobe/FUNCTION"
  static Result<ReturnProbe> attach(const bpf_program* program);

 private:
  std::string event_;  ///< "GROUP/NAME"; empty: none
  std::string events_file_;
  bpf_link* link_ = nullptr;
};

}  // namespace tacho::kernel
