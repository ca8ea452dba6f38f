#include "kernel/bpf_log.h"

#include <bpf/libbpf.h>
#include <spdlog/spdlog.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string_view>

namespace tacho::kernel {
namespace {

constexpr std::size_t kMaxCaptured = std::size_t{64} << 10;

thread_local std::string* current_capture = nullptr;

[[gnu::format(printf, 2, 0)]] int print(libbpf_print_level level, const char* format, va_list arguments) {
  // A verifier's log is one message of up to megabytes.
  char* message = nullptr;
  const int length = ::vasprintf(&message, format, arguments);
  if (length <= 0) {
    return 0;
  }
  const std::unique_ptr<char, decltype(&std::free)> owner(message, std::free);
  std::string_view text(message);
  if (level == LIBBPF_WARN && current_capture != nullptr && current_capture->size() < kMaxCaptured) {
    // The end of a log says what is wrong.
    current_capture->append(text.size() > kMaxCaptured ? text.substr(text.size() - kMaxCaptured) : text);
  }
  while (text.ends_with('\n')) {
    text.remove_suffix(1);
  }
  spdlog::debug("{}", text);
  return length;
}

bool tells_why(std::string_view line) {
  return line.starts_with("libbpf: prog '") || line.find("failed") != std::string_view::npos;
}

}  // namespace

BpfLogCapture::BpfLogCapture() : outer_(current_capture) {
  current_capture = &text_;
}

BpfLogCapture::~BpfLogCapture() {
  current_capture = outer_;
}

std::string BpfLogCapture::summary() const {
  std::string first;
  std::string telling;
  std::string verifier;
  bool in_log =
      text_.find("BEGIN PROG LOAD LOG") == std::string::npos && text_.find("END PROG LOAD LOG") != std::string::npos;
  std::string_view rest = text_;
  while (!rest.empty()) {
    const auto end = rest.find('\n');
    const std::string_view line = rest.substr(0, end);
    rest = end == std::string_view::npos ? std::string_view{} : rest.substr(end + 1);
    if (line.find("BEGIN PROG LOAD LOG") != std::string_view::npos) {
      in_log = true;
    } else if (line.find("END PROG LOAD LOG") != std::string_view::npos) {
      in_log = false;
    } else if (in_log && !line.starts_with("libbpf: ")) {
      if (!line.empty() && !line.starts_with("processed ")) {
        verifier = line;
      }
    } else if (first.empty() || (telling.empty() && tells_why(line))) {
      const std::string_view message = line.starts_with("libbpf: ") ? line.substr(8) : line;
      first = first.empty() ? message : first;
      telling = tells_why(line) ? message : telling;
    }
  }
  if (telling.empty()) {
    telling = first;
  }
  if (verifier.empty()) {
    return telling;
  }
  return telling.empty() ? verifier : telling + " (" + verifier + ")";
}

void install_bpf_log() {
  libbpf_set_print(print);
}

}  // namespace tacho::kernel
