#pragma once

#include <linux/bpf.h>

namespace tacho::kernel_test {

/// From now on the kernel refuses this command of bpf(2) to the whole process, as a security module may: EPERM. Nothing
/// takes that back, so it is for a Child's body.
void refuse(bpf_cmd command);

}  // namespace tacho::kernel_test
