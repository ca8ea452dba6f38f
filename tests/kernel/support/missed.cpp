#include "kernel/support/missed.h"

#include <bpf/bpf.h>
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <filesystem>

#include "base/unique_fd.h"
#include "kernel/support/wire.h"

namespace tacho::kernel_test {
namespace {

constexpr std::size_t kNameLength = 15;

bool is_link(const std::filesystem::path& descriptor) {
  std::error_code gone;
  const auto target = std::filesystem::read_symlink(descriptor, gone);
  return !gone && target.string().starts_with("anon_inode:bpf") && target.string().find("link") != std::string::npos;
}

UniqueFd program_of(std::uint32_t id) {
  UniqueFd program(::bpf_prog_get_fd_by_id(id));
  must(static_cast<bool>(program), "bpf_prog_get_fd_by_id");
  return program;
}

bpf_prog_info info_of_program(std::uint32_t id) {
  bpf_prog_info info{};
  std::uint32_t size = sizeof(info);
  must(::bpf_obj_get_info_by_fd(program_of(id).get(), &info, &size) == 0, "BPF_OBJ_GET_INFO_BY_FD");
  return info;
}

bpf_link_info info_of(int link, bpf_link_info info = {}) {
  std::uint32_t size = sizeof(info);
  must(::bpf_obj_get_info_by_fd(link, &info, &size) == 0, "BPF_OBJ_GET_INFO_BY_FD");
  return info;
}

/// Of a link by a raw tracepoint.
std::string tracepoint_of(int link) {
  std::array<char, 128> name{};
  bpf_link_info wanted{};
  wanted.raw_tracepoint.tp_name = reinterpret_cast<std::uintptr_t>(name.data());
  wanted.raw_tracepoint.tp_name_len = name.size();
  (void)info_of(link, wanted);
  return name.data();
}

}  // namespace

Missed::Missed(const std::string& program) {
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    if (!is_link(entry.path())) {
      continue;
    }
    const int place = std::stoi(entry.path().filename());
    const bpf_link_info link = info_of(place);
    if (link.type != BPF_LINK_TYPE_RAW_TRACEPOINT) {
      continue;
    }
    const bpf_prog_info info = info_of_program(link.prog_id);
    if (info.name != program.substr(0, kNameLength)) {
      continue;
    }
    const bool knows_tracepoint = info.type == BPF_PROG_TYPE_TRACING;
    away_.push_back(
        {.place = place, .program = link.prog_id, .tracepoint = knows_tracepoint ? "" : tracepoint_of(place)});
  }
  const UniqueFd nothing(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  for (const Link& link : away_) {
    // Its only descriptor: the kernel takes the program from its tracepoint.
    must(::dup3(nothing.get(), link.place, O_CLOEXEC) == link.place, "dup3");
  }
}

Missed::~Missed() {
  for (const Link& link : away_) {
    const UniqueFd program(::bpf_prog_get_fd_by_id(link.program));
    const UniqueFd back(
        ::bpf_raw_tracepoint_open(link.tracepoint.empty() ? nullptr : link.tracepoint.c_str(), program.get()));
    ::dup3(back.get(), link.place, O_CLOEXEC);
  }
}

}  // namespace tacho::kernel_test
