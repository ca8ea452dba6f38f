#include "kernel/support/refusal.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <system_error>

namespace tacho::kernel_test {

void refuse(bpf_cmd command) {
  const auto load = [](std::size_t offset) {
    return sock_filter{.code = BPF_LD | BPF_W | BPF_ABS, .jt = 0, .jf = 0, .k = static_cast<__u32>(offset)};
  };
  const auto skip_unless = [](__u32 value, __u8 instructions) {
    return sock_filter{.code = BPF_JMP | BPF_JEQ | BPF_K, .jt = 0, .jf = instructions, .k = value};
  };
  const auto end = [](__u32 verdict) { return sock_filter{.code = BPF_RET | BPF_K, .jt = 0, .jf = 0, .k = verdict}; };
  std::array filter{load(offsetof(seccomp_data, nr)),      skip_unless(SYS_bpf, 3),
                    load(offsetof(seccomp_data, args)),    skip_unless(static_cast<__u32>(command), 1),
                    end(SECCOMP_RET_ERRNO | __u32{EPERM}), end(SECCOMP_RET_ALLOW)};
  const sock_fprog program{.len = filter.size(), .filter = filter.data()};
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) != 0) {
    throw std::system_error(errno, std::system_category(), "seccomp");
  }
}

}  // namespace tacho::kernel_test
