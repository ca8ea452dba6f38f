#include "kernel/outer_map.h"

#include <bpf/bpf.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <vector>

#include "base/beside.h"
#include "kernel/features.h"

namespace tacho::kernel {
namespace {

/// Waits for the end of programs that run beside each other cost next to nothing.
constexpr std::size_t kThreads = 16;

/// Commit 37ba5b59d6ad: one wait a batch. Before, a batch is no gain.
bool waits_once() {
  return kernel_release() >= std::pair(6U, 8U);
}

}  // namespace

Result<void> update_outer_map(int outer, std::span<const std::pair<std::uint32_t, int>> entries) {
  if (entries.empty()) {
    return {};
  }
  std::vector<std::uint32_t> indices;
  std::vector<int> descriptors;
  for (const auto& [index, descriptor] : entries) {
    indices.push_back(index);
    descriptors.push_back(descriptor);
  }
  auto count = static_cast<__u32>(indices.size());
  if (waits_once() && bpf_map_update_batch(outer, indices.data(), descriptors.data(), &count, nullptr) == 0) {
    return {};
  }
  std::atomic<std::size_t> next = 0;
  std::atomic<int> failed = 0;
  const auto work = [&] {
    for (std::size_t i = next++; i < entries.size(); i = next++) {
      if (bpf_map_update_elem(outer, &indices[i], &descriptors[i], BPF_ANY) != 0) {
        failed = errno;
      }
    }
  };
  {
    // What is not begun, as no thread could be started, has been done by the time that it would be.
    std::vector<std::future<void>> others;
    for (std::size_t i = 1; i < std::min(kThreads, entries.size()); ++i) {
      others.push_back(begin_beside(work));
    }
    work();
  }
  return failed != 0 ? Result<void>(fail_errno("cannot put arrays into a BPF array of maps", failed)) : Result<void>();
}

}  // namespace tacho::kernel
