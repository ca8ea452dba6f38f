/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Sockets that are older than the programs or than their target. Two passes go over all open files: the first
 * collects the listening ports of the machine, the second gives the sockets of watched tasks their state.
 */
#pragma once

#include "socket_binding.bpf.h"

static __always_inline bool is_listening(struct sock *sk)
{
	return (is_tcp(sk) || is_mptcp(sk)) && FIELD(sk, __sk_common.skc_state) == TCP_LISTEN;
}

SEC("iter/task_file")
int socket_list_ports(struct bpf_iter__task_file *ctx)
{
	struct file *file = ctx->file;
	struct task_struct *task = ctx->task;
	struct sock *sk;

	if (!file || !task)
		return 0;
	sk = sock_of_file(file);
	if (!sk)
		return 0;
	if (is_listening(sk))
		note_listener(sk);
	return 0;
}

/*
 * The listening ports of tacho's own network namespace, whoever listens: as one container of a pod it cannot
 * walk over the processes of the others.
 */
SEC("iter/tcp")
int socket_list_own_ports(struct bpf_iter__tcp *ctx)
{
	struct sock_common *sk = ctx->sk_common;

	if (sk && FIELD(sk, skc_state) == TCP_LISTEN) {
		struct listening_port key = {
		    .network = BPF_CORE_READ(sk, skc_net.net, ns.inum),
		    .port = FIELD(sk, skc_num),
		};

		add_listener((u64)sk, &key);
	}
	return 0;
}

static __always_inline void adopt_socket(struct bpf_iter__task_file *ctx, bool listeners_only)
{
	struct target_rules *rules = get_rules();
	struct file *file = ctx->file;
	struct task_struct *task = ctx->task;
	struct socket_state *st;
	struct sock *sk;
	u64 cgroup;

	if (!file || !task || !rules)
		return;
	cgroup = cgroup_of(task);
	if (surely_unwatched(rules, cgroup, FIELD(task, tgid)))
		return;
	sk = sock_of_file(file);
	if (!sk || (listeners_only && !is_listening(sk)))
		return;
	st = state_of(sk);
	if (!st || st->generation != rules->generation)
		bind_by_task(sk, rules, cgroup, FIELD(task, tgid), TACHO_ROLE_NONE, OLDER_THAN_TACHO);
}

SEC("iter/task_file")
int socket_adopt(struct bpf_iter__task_file *ctx)
{
	adopt_socket(ctx, false);
	return 0;
}

/* Sockets whose listening was missed. Of any other socket the first operation is visible, or suffices. */
SEC("iter/task_file")
int socket_adopt_listeners(struct bpf_iter__task_file *ctx)
{
	adopt_socket(ctx, true);
	return 0;
}
