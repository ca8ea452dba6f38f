// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/* What one end of a connection sends goes right into the other end's queue, past TCP: as service meshes do it. */
#include "lib/kernel.bpf.h"

char LICENSE[] SEC("license") = "GPL";

struct {
  __uint(type, BPF_MAP_TYPE_SOCKMAP);
  __uint(max_entries, 2);
  __type(key, __u32);
  __type(value, __u32);
} ends SEC(".maps");

/* Set before loading. */
const volatile __u32 server_port = 0;

SEC("sk_msg")
int to_other_end(struct sk_msg_md* message) {
  return bpf_msg_redirect_map(message, &ends, message->local_port == server_port ? 0 : 1, BPF_F_INGRESS);
}
