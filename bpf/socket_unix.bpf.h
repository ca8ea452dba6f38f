/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * The accepted ends of unix connections to watched servers, until their first data arrives. The key is the
 * address of the socket, which may belong to another socket once it is freed: so the name, shared with the
 * listening socket, must agree.
 */
#pragma once

#include "socket_roles.bpf.h"

struct unix_connection {
	struct socket_state state;
	u64 name;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 8192);
	__type(key, u64);
	__type(value, struct unix_connection);
} unix_connections SEC(".maps");

/* What an entry begins as: too large for the stack. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct unix_connection);
} no_unix_connection SEC(".maps");

static __always_inline u64 unix_name(struct sock *sk)
{
	return (u64)BPF_CORE_READ((struct unix_sock *)sk, addr);
}

/* Of so many that connect at a time: also while a hypervisor stops the CPU of one. */
#define UNIX_CONNECTORS 128

/*
 * A client has connected to a listening unix socket, in whose queue the new end waits: which one is it?
 * Others may have queued theirs before this hook runs. A global function: the verifier works through its loop
 * once.
 */
__noinline u64 new_unix_end(u64 address)
{
	const struct sock *listener = (const struct sock *)address;
	struct task_struct *client = (struct task_struct *)bpf_get_current_task();
	struct pid *process = BPF_CORE_READ(client, group_leader, thread_pid);
	const void *queue = &listener->sk_receive_queue;
	struct sk_buff *last = BPF_CORE_READ(listener, sk_receive_queue.prev), *each = last;
	u64 name = (u64)BPF_CORE_READ((const struct unix_sock *)listener, addr);

	for (int i = 0; i < UNIX_CONNECTORS && each != queue; i++) {
		u64 end = (u64)BPF_CORE_READ(each, sk);
		struct unix_connection *known = bpf_map_lookup_elem(&unix_connections, &end);

		if (BPF_CORE_READ((const struct sock *)end, sk_peer_pid) == process &&
		    (!known || known->name != name))
			return end;
		each = BPF_CORE_READ(each, prev);
	}
	/* Where what stands there is of a socket that was freed. */
	return last == queue ? 0 : (u64)BPF_CORE_READ(last, sk);
}

static __always_inline void expect_unix_connection(struct sock *listener, const struct socket_state *from)
{
	struct unix_connection *connection;
	u64 key = new_unix_end(as_number(listener));
	u32 zero = 0;

	if (!key)
		return;
	connection = bpf_map_lookup_elem(&no_unix_connection, &zero);
	if (connection)
		bpf_map_update_elem(&unix_connections, &key, connection, BPF_ANY);
	connection = bpf_map_lookup_elem(&unix_connections, &key);
	if (!connection) {
		count_loss(TACHO_LOST_MAP_FULL);
		return;
	}
	connection->state.owner = from->owner;
	connection->state.generation = from->generation;
	connection->state.owned_by_process = from->owned_by_process;
	connection->state.target = from->target;
	connection->state.role = !server_is_wanted(&from->target, listener)	    ? TACHO_ROLE_IGNORED
				 : leaves_node_out(&from->target) && asks_as_node() ? TACHO_ROLE_NODE_SERVER
										    : TACHO_ROLE_SERVER;
	connection->state.close_unseen = true;
	connection->state.http2 =
	    connection->state.role == TACHO_ROLE_SERVER ? http2_wish(&from->target, false) : HTTP2_OFF;
	connection->state.established = bpf_ktime_get_ns();
	connection->name = unix_name(listener);
}

/* What was expected of the accepted end of a unix connection becomes its state. */
static __always_inline struct socket_state *take_unix_connection(struct sock *sk)
{
	struct unix_connection *connection;
	struct socket_state *st;
	u64 key = (u64)sk;
	u64 name = unix_name(sk);

	if (!name)
		return NULL;
	connection = bpf_map_lookup_elem(&unix_connections, &key);
	if (!connection)
		return NULL;
	st = connection->name == name ? make_state(sk, &connection->state) : NULL;
	bpf_map_delete_elem(&unix_connections, &key);
	return st;
}
