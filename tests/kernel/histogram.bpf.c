// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/* The programs' own slot function, to be compared with user space's. */
#include "lib/accumulate.bpf.h"

char LICENSE[] SEC("license") = "GPL";

SEC("raw_tp")
int slot_of(u64* ctx) {
  return histogram_slot(ctx[0]);
}

SEC("raw_tp")
int fine_slot_of(u64* ctx) {
  return fine_slot(ctx[0]);
}
