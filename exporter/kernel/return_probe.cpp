#include "kernel/return_probe.h"

#include <fcntl.h>
#include <linux/perf_event.h>
#include <spdlog/spdlog.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <fstream>
#include <string_view>
#include <utility>
#include <vector>

#include "base/unique_fd.h"
#include "kernel/features.h"

namespace tacho::kernel {
namespace {

/// Calls in progress at a time; some 100 bytes of kernel memory each.
constexpr int kCallsInProgress = 1024;
constexpr std::string_view kGroup = "tacho_";

Result<void> command(const std::string& events_file, const std::string& line) {
  const UniqueFd file(::open(events_file.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
  if (!file || ::write(file.get(), line.data(), line.size()) < 0) {
    return fail_errno("cannot write \"" + line + "\" to " + events_file);
  }
  return {};
}

/// An event that stays is a line that does nothing.
void remove_event(const std::string& events_file, const std::string& event) {
  if (auto done = command(events_file, "-:" + event); !done) {
    spdlog::debug("{}", done.error().message);
  }
}

/// Removes the events of processes that are gone: lines "r1024:tacho_PID/NAME FUNCTION".
void remove_stale(const std::string& events_file) {
  std::ifstream file(events_file);
  std::vector<std::string> stale;
  for (std::string line; std::getline(file, line);) {
    const auto begin = line.find(kGroup);
    const auto slash = line.find('/');
    if (begin == std::string::npos || slash == std::string::npos || slash < begin) {
      continue;
    }
    const std::string owner = line.substr(begin + kGroup.size(), slash - begin - kGroup.size());
    if (::access(("/proc/" + owner).c_str(), F_OK) != 0) {
      stale.push_back(line.substr(begin, line.find(' ') - begin));
    }
  }
  for (const std::string& event : stale) {
    // Another tacho may have been faster.
    remove_event(events_file, event);
  }
}

Result<std::uint64_t> event_id(const std::string& path) {
  std::ifstream file(path);
  std::uint64_t id = 0;
  if (!(file >> id)) {
    return fail("cannot read " + path, ENOENT);
  }
  return id;
}

}  // namespace

ReturnProbe::ReturnProbe(ReturnProbe&& other) noexcept
    : event_(std::exchange(other.event_, {})),
      events_file_(std::move(other.events_file_)),
      link_(std::exchange(other.link_, nullptr)) {}

ReturnProbe& ReturnProbe::operator=(ReturnProbe&& other) noexcept {
  std::swap(event_, other.event_);
  std::swap(events_file_, other.events_file_);
  std::swap(link_, other.link_);
  return *this;
}

ReturnProbe::~ReturnProbe() {
  if (link_ != nullptr) {
    bpf_link__destroy(link_);
  }
  if (!event_.empty()) {
    remove_event(events_file_, event_);
  }
}

Result<ReturnProbe> ReturnProbe::attach(const bpf_program* program) {
  auto tracefs = ensure_tracefs();
  if (!tracefs) {
    return std::unexpected(tracefs.error());
  }
  ReturnProbe probe;
  probe.events_file_ = *tracefs + "/kprobe_events";
  static const bool tidy = (remove_stale(probe.events_file_), true);
  static_cast<void>(tidy);
  static int number = 0;
  const std::string_view section = bpf_program__section_name(program);
  const std::string event = std::string(kGroup) + std::to_string(::getpid()) + "/" +
                            std::string(bpf_program__name(program)) + "_" + std::to_string(++number);
  auto defined = command(probe.events_file_, "r" + std::to_string(kCallsInProgress) + ":" + event + " " +
                                                 std::string(section.substr(section.find('/') + 1)));
  if (!defined) {
    return std::unexpected(defined.error());
  }
  probe.event_ = event;
  auto id = event_id(*tracefs + "/events/" + event + "/id");
  if (!id) {
    return std::unexpected(id.error());
  }
  perf_event_attr attributes{};
  attributes.type = PERF_TYPE_TRACEPOINT;
  attributes.size = sizeof(attributes);
  attributes.config = *id;
  const int descriptor = static_cast<int>(::syscall(SYS_perf_event_open, &attributes, -1, 0, -1, PERF_FLAG_FD_CLOEXEC));
  if (descriptor < 0) {
    return fail_errno("perf_event_open of " + event + " (needs CAP_SYS_ADMIN where perf_event_paranoid is high)");
  }
  // The link owns the descriptor from here on.
  probe.link_ = bpf_program__attach_perf_event(program, descriptor);
  if (probe.link_ == nullptr) {
    const int error = errno;
    ::close(descriptor);
    return fail_errno("cannot attach to " + event, error);
  }
  return probe;
}

}  // namespace tacho::kernel
