// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/* The shard that the programs take on the CPU that they run on. */
#include "lib/accumulate.bpf.h"

char LICENSE[] SEC("license") = "GPL";

SEC("raw_tp")
int shard_here(u64* ctx) {
  return process_shard();
}
