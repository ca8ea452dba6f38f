// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/* Sends by cgroup and nothing else: the least that somebody who wants a rate of replies would write. What tacho takes
 * for a request is held against it (tests/matrix/requests). One of the ways is loaded.
 */
#include "lib/kernel.bpf.h"

char LICENSE[] SEC("license") = "GPL";

struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, 1024);
  __type(key, u64);
  __type(value, u64);
} sends SEC(".maps");

static __always_inline void count_send(void) {
  u64 cgroup = bpf_get_current_cgroup_id(), one = 1;
  u64* count = bpf_map_lookup_elem(&sends, &cgroup);

  if (count)
    __sync_fetch_and_add(count, 1);
  else
    bpf_map_update_elem(&sends, &cgroup, &one, BPF_ANY);
}

/* By system call, as tools have it that know no other hook: write, writev, sendto, sendmsg. */
SEC("tp_btf/sys_exit")
int BPF_PROG(by_call, struct pt_regs* regs, long ret) {
  u64 call = regs->orig_ax;

  if (ret > 0 && (call == 1 || call == 20 || call == 44 || call == 46))
    count_send();
  return 0;
}

/* Where sockets send: the hook that tacho has there. */
SEC("tp_btf/sock_send_length")
int BPF_PROG(by_socket, struct sock* sk, int ret) {
  if (ret > 0)
    count_send();
  return 0;
}

/* The same before Linux 6.3: a function for each family. */
SEC("fexit/inet_sendmsg")
int BPF_PROG(by_function, struct socket* socket, void* message, unsigned long size, int ret) {
  if (ret > 0)
    count_send();
  return 0;
}

SEC("fexit/inet6_sendmsg")
int BPF_PROG(by_function_v6, struct socket* socket, void* message, unsigned long size, int ret) {
  if (ret > 0)
    count_send();
  return 0;
}
