#include "kernel/bpf_log.h"

#include <bpf/libbpf.h>
#include <spdlog/spdlog.h>

#include <charconv>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <string_view>

namespace tacho::kernel {
namespace {

constexpr std::size_t kMaxCaptured = std::size_t{64} << 10;

thread_local BpfLogCapture* current_capture = nullptr;

/// What the verifier says at its end with BPF_LOG_STATS: "prog 'NAME': -- BEGIN PROG LOAD LOG --\nprocessed N insns …".
void take_statistics(std::string_view text, std::map<std::string, std::uint32_t, std::less<>>& verified) {
  constexpr std::string_view kName = "prog '";
  constexpr std::string_view kCount = "\nprocessed ";
  const auto name = text.find(kName);
  const auto count = text.find(kCount);
  if (name == std::string_view::npos || count == std::string_view::npos) {
    return;
  }
  const auto begin = name + kName.size();
  const std::string_view number = text.substr(count + kCount.size());
  std::uint32_t instructions = 0;
  if (std::from_chars(number.begin(), number.end(), instructions).ec == std::errc()) {
    verified[std::string(text.substr(begin, text.find('\'', begin) - begin))] = instructions;
  }
}

[[gnu::format(printf, 2, 0)]] int print(libbpf_print_level level, const char* format, va_list arguments) {
  // A verifier's log is one message of up to megabytes.
  char* message = nullptr;
  const int length = ::vasprintf(&message, format, arguments);
  if (length <= 0) {
    return 0;
  }
  const std::unique_ptr<char, decltype(&std::free)> owner(message, std::free);
  std::string_view text(message);
  if (current_capture != nullptr) {
    current_capture->take(level == LIBBPF_WARN, text);
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
  current_capture = this;
}

BpfLogCapture::~BpfLogCapture() {
  current_capture = outer_;
}

void BpfLogCapture::take(bool warning, std::string_view text) {
  if (!warning) {
    take_statistics(text, verified_);
  } else if (text_.size() < kMaxCaptured) {
    // The end of a log says what is wrong.
    text_.append(text.size() > kMaxCaptured ? text.substr(text.size() - kMaxCaptured) : text);
  }
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
      if (!line.empty() && !line.starts_with("processed ") && !line.starts_with("stack depth ") &&
          !line.starts_with("verification time ")) {
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

std::string culprit_of(const std::string& message) {
  constexpr std::string_view kMark = "prog '";
  const auto begin = message.find(kMark);
  if (begin == std::string::npos) {
    return {};
  }
  const auto end = message.find('\'', begin + kMark.size());
  return message.substr(begin + kMark.size(), end - begin - kMark.size());
}

void install_bpf_log() {
  libbpf_set_print(print);
}

}  // namespace tacho::kernel
