#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

namespace tacho::kernel {

/// Collects libbpf's messages on this thread while it exists: debug messages go to the log, warnings are kept for the
/// error message of libbpf's caller.
class BpfLogCapture {
 public:
  BpfLogCapture();
  ~BpfLogCapture();
  BpfLogCapture(const BpfLogCapture&) = delete;
  BpfLogCapture& operator=(const BpfLogCapture&) = delete;

  /// The most informative line of the warnings so far (the verifier's last complaint, else libbpf's first warning).
  [[nodiscard]] std::string summary() const;
  /// Instructions that the verifier processed, by program; of those that were loaded with BPF_LOG_STATS.
  [[nodiscard]] const std::map<std::string, std::uint32_t, std::less<>>& verified() const { return verified_; }

  /// A message of libbpf.
  void take(bool warning, std::string_view text);

 private:
  BpfLogCapture* outer_;
  std::string text_;
  std::map<std::string, std::uint32_t, std::less<>> verified_;
};

/// The program that a message of libbpf ("prog 'NAME': …") is about; empty if it names none.
std::string culprit_of(const std::string& message);

/// Routes libbpf's messages to the log; once, before anything else of libbpf.
void install_bpf_log();

}  // namespace tacho::kernel
