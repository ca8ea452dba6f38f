#include "kernel/iterator.h"

#include <bpf/bpf.h>

#include <algorithm>
#include <array>

#include "base/unique_fd.h"
#include "kernel/libbpf_options.h"
#include "kernel/map_keys.h"

namespace tacho::kernel {

namespace {

using Sink = std::function<void(std::span<const std::byte>)>;

Result<void> run(const bpf_program* program, const bpf_link_create_opts* options, const Sink& sink) {
  const UniqueFd link(bpf_link_create(bpf_program__fd(program), 0, BPF_TRACE_ITER, options));
  if (!link) {
    return fail_errno(std::string("cannot attach iterator ") + bpf_program__name(program));
  }
  const UniqueFd iterator(bpf_iter_create(link.get()));
  if (!iterator) {
    return fail_errno(std::string("cannot start iterator ") + bpf_program__name(program));
  }
  std::array<std::byte, std::size_t{32} << 10> buffer{};
  while (true) {
    const ssize_t length = ::read(iterator.get(), buffer.data(), buffer.size());
    if (length > 0) {
      sink(std::span(buffer).first(static_cast<std::size_t>(length)));
    } else if (length == 0) {
      return {};
    } else if (errno != EAGAIN && errno != EINTR) {
      return fail_errno(std::string("iterator ") + bpf_program__name(program));
    }
  }
}

}  // namespace

Result<void> run_iterator(const bpf_program* program, const Sink& sink) {
  return run(program, nullptr, sink);
}

Result<void> run_map_iterator(const bpf_program* program, int map) {
  bpf_iter_link_info over{};
  over.map.map_fd = static_cast<__u32>(map);
  auto options = libbpf_options<bpf_link_create_opts>();
  options.iter_info = &over;
  options.iter_info_len = sizeof(over);
  return run(program, &options, [](std::span<const std::byte>) {});
}

Result<void> run_over_keys(const bpf_program* program, int map) {
  constexpr std::size_t kKeysPerRun = 12;  // MAX_BPF_FUNC_ARGS
  const auto keys = keys_of<std::uint64_t>(map);
  if (!keys) {
    return std::unexpected(keys.error());
  }
  for (std::size_t at = 0; at < keys->size(); at += kKeysPerRun) {
    std::array<std::uint64_t, kKeysPerRun> arguments{};
    std::copy_n(keys->begin() + static_cast<std::ptrdiff_t>(at), std::min(kKeysPerRun, keys->size() - at),
                arguments.begin());
    auto options = libbpf_options<bpf_test_run_opts>();
    options.ctx_in = arguments.data();
    options.ctx_size_in = sizeof(arguments);
    if (bpf_prog_test_run_opts(bpf_program__fd(program), &options) != 0) {
      return fail_errno(std::string("cannot run ") + bpf_program__name(program));
    }
  }
  return {};
}

Result<void> run_iterator(const bpf_program* program) {
  return run_iterator(program, [](std::span<const std::byte>) {});
}

}  // namespace tacho::kernel
