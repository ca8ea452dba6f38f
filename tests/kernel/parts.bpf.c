// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/* Programs of three parts of one object, one of which no kernel takes. */
#include "lib/kernel.bpf.h"

char LICENSE[] SEC("license") = "GPL";

/* Runs, by part. */
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, 3);
  __type(key, __u32);
  __type(value, __u64);
} part_runs SEC(".maps");

static __always_inline int count(__u32 part) {
  __u64* runs = bpf_map_lookup_elem(&part_runs, &part);

  if (runs)
    __sync_fetch_and_add(runs, 1);
  return 0;
}

SEC("raw_tp/task_newtask")
int part_first(void* ctx) {
  return count(0);
}

SEC("raw_tp/task_newtask")
int part_good(void* ctx) {
  return count(1);
}

/* A number is no address. */
SEC("raw_tp/task_newtask")
int part_refused(void* ctx) {
  return *(volatile __u32*)(__u64)bpf_get_prandom_u32();
}

/* No kernel has that event: this is loaded, and not attached. */
SEC("raw_tp/tacho_unheard_of")
int part_unattachable(void* ctx) {
  return count(2);
}

/* Of which cgroups it is not told: this is loaded, and not started. */
SEC("iter/cgroup")
int part_unstartable(void* ctx) {
  return 0;
}

SEC("raw_tp/task_newtask")
int part_instead(void* ctx) {
  return count(2);
}
