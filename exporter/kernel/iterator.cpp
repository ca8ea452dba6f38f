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

/// The iterator keeps the link for as long as it needs it.
Result<UniqueFd> start(const bpf_program* program, const bpf_link_create_opts* options) {
  const UniqueFd link(bpf_link_create(bpf_program__fd(program), 0, BPF_TRACE_ITER, options));
  if (!link) {
    return fail_errno(std::string("cannot attach iterator ") + bpf_program__name(program));
  }
  UniqueFd iterator(bpf_iter_create(link.get()));
  if (!iterator) {
    return fail_errno(std::string("cannot start iterator ") + bpf_program__name(program));
  }
  return iterator;
}

Result<UniqueFd> start_over(const bpf_program* program, int map) {
  bpf_iter_link_info over{};
  over.map.map_fd = static_cast<__u32>(map);
  auto options = libbpf_options<bpf_link_create_opts>();
  options.iter_info = &over;
  options.iter_info_len = sizeof(over);
  return start(program, &options);
}

Result<void> outcome(const Result<UniqueFd>& started) {
  return started ? Result<void>() : std::unexpected(started.error());
}

Result<void> run(const bpf_program* program, const Result<UniqueFd>& started, const Sink& sink) {
  if (!started) {
    return std::unexpected(started.error());
  }
  const UniqueFd& iterator = *started;
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

constexpr std::size_t kKeysPerRun = 12;  // MAX_BPF_FUNC_ARGS

/// Arguments that no key is left for are 0.
Result<void> run_with(const bpf_program* program, std::span<const std::uint64_t> keys) {
  std::array<std::uint64_t, kKeysPerRun> arguments{};
  std::ranges::copy(keys, arguments.begin());
  auto options = libbpf_options<bpf_test_run_opts>();
  options.ctx_in = arguments.data();
  options.ctx_size_in = sizeof(arguments);
  if (bpf_prog_test_run_opts(bpf_program__fd(program), &options) != 0) {
    return fail_errno(std::string("cannot run ") + bpf_program__name(program));
  }
  return {};
}

}  // namespace

Result<void> run_iterator(const bpf_program* program, const Sink& sink) {
  return run(program, start(program, nullptr), sink);
}

Result<void> run_map_iterator(const bpf_program* program, int map) {
  return run(program, start_over(program, map), [](std::span<const std::byte>) {});
}

Result<void> try_iterator(const bpf_program* program) {
  return outcome(start(program, nullptr));
}

Result<void> try_map_iterator(const bpf_program* program, int map) {
  return outcome(start_over(program, map));
}

Result<void> run_over_no_keys(const bpf_program* program) {
  return run_with(program, {});
}

Result<void> run_over_keys(const bpf_program* program, int map) {
  const auto keys = keys_of<std::uint64_t>(map);
  if (!keys) {
    return std::unexpected(keys.error());
  }
  for (std::size_t at = 0; at < keys->size(); at += kKeysPerRun) {
    if (auto done = run_with(program, std::span(*keys).subspan(at, std::min(kKeysPerRun, keys->size() - at))); !done) {
      return done;
    }
  }
  return {};
}

Result<void> run_iterator(const bpf_program* program) {
  return run_iterator(program, [](std::span<const std::byte>) {});
}

}  // namespace tacho::kernel
