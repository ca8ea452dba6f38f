#pragma once

#include <string>

namespace tacho::kernel {

/// Collects what libbpf prints while it lives (this thread only): debug messages go to the log, warnings are kept for
/// the error message of whoever called libbpf.
class BpfLogCapture {
 public:
  BpfLogCapture();
  ~BpfLogCapture();
  BpfLogCapture(const BpfLogCapture&) = delete;
  BpfLogCapture& operator=(const BpfLogCapture&) = delete;

  /// The most telling line of the warnings so far (the verifier's last complaint, else libbpf's first warning).
  [[nodiscard]] std::string summary() const;

 private:
  std::string* outer_;
  std::string text_;
};

/// Routes libbpf's messages to the log; once, before anything else of libbpf.
void install_bpf_log();

}  // namespace tacho::kernel
