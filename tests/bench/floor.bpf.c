// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/* Programs that do nothing, on the hooks of the socket and sched probes: what being there at all costs. */
#include "lib/kernel.bpf.h"

char LICENSE[] SEC("license") = "GPL";

SEC("tp_btf/sock_send_length")
int BPF_PROG(floor_send, struct sock* sk, int ret, int flags) {
  return 0;
}

SEC("tp_btf/sock_recv_length")
int BPF_PROG(floor_receive, struct sock* sk, int ret, int flags) {
  return 0;
}

SEC("tp_btf/sk_data_ready")
int BPF_PROG(floor_data_ready, struct sock* sk) {
  return 0;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(floor_switch, bool preempted, struct task_struct* prev, struct task_struct* next) {
  return 0;
}

SEC("tp_btf/sched_wakeup")
int BPF_PROG(floor_wakeup, struct task_struct* task) {
  return 0;
}
