/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Requests of the node itself, where a target leaves them out: the kubelet's probes, and those that the
 * runtime runs inside of a container.
 *
 * The client is known where a connection is made, in the client's own context: a process of the same machine
 * that is in no container, or one that the runtime has put into the container beside the container's own. Its
 * address would not identify it: data that comes through the node's ports has the node's address, too. The
 * two ends of the connection are noted when it is established; the client's end is established first.
 *
 * Such requests are only counted. If the client cannot be identified, they are a user's.
 */
#pragma once

#include "socket_datagram_address.bpf.h"
#include "socket_http2.bpf.h"
#include "socket_state.bpf.h"
#include "socket_storage.bpf.h"

/* IPv4 addresses stand as IPv4-mapped IPv6. */
struct connection_ends {
	u32 client[4];
	u32 server[4];
	u16 client_port;
	u16 server_port;
	u32 network; /* of loopback addresses, which every network has; else 0 */
};

enum node_client {
	NODE_PROCESS = 1,   /* in no container */
	NODE_PUT_THERE = 2, /* by the runtime, into a container */
};

struct node_socket {
	struct connection_ends ends; /* once it is established */
	u32 client;		     /* enum node_client */
};

/* Sockets by which the node asks, by address; and their connections. Entries go with the socket. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 16384);
	__type(key, u64);
	__type(value, struct node_socket);
} node_sockets SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 16384);
	__type(key, struct connection_ends);
	__type(value, u32);
} node_connections SEC(".maps");

/* Levels of cgroups, and of processes, that are gone up. */
#define NODE_LEVELS 16
/* Runtimes call containers by 64 hex digits, with or without words around; nobody else has names so long. */
#define CONTAINER_NAME 64

/* "machine.slice", "lxc.payload.NAME": what is a machine or a container by another name. */
#define IS_MACHINE(name) (!__builtin_memcmp(name, "machine.", 8) || !__builtin_memcmp(name, "lxc.payl", 8))

/*
 * What is too deep to tell is taken for one, and its requests for a user's. A global function, as others
 * here: the verifier works through its loop once a program.
 */
__noinline u32 is_in_container(u64 address)
{
	struct cgroup *cgroup = group_of((struct task_struct *)address);

	for (int level = 0; level < NODE_LEVELS; level++) {
		char name[CONTAINER_NAME + 8] = {};
		long length = bpf_probe_read_kernel_str(name, sizeof(name), BPF_CORE_READ(cgroup, kn, name));
		struct cgroup_subsys_state *parent = BPF_CORE_READ(cgroup, self.parent);

		/* With the NUL at its end. */
		if (length < 0 || length > CONTAINER_NAME || IS_MACHINE(name))
			return true;
		if (!parent)
			return false;
		cgroup = BPF_CORE_READ(parent, cgroup);
	}
	return true;
}

/*
 * Not the container's first process, nor a descendant of it: its parent is outside of the container. Where a
 * pod's containers share their processes, the first one is another container's, and nobody can be told.
 */
__noinline u32 is_put_there(u64 address)
{
	struct task_struct *task = (struct task_struct *)address;
	struct task_struct *first = BPF_CORE_READ(task, nsproxy, pid_ns_for_children, child_reaper);
	u64 cgroup = cgroup_of(task);

	if (!first || cgroup_of(first) != cgroup)
		return false;
	for (int level = 0; level < NODE_LEVELS; level++) {
		task = BPF_CORE_READ(task, group_leader);
		if (task == first)
			return false;
		task = BPF_CORE_READ(task, real_parent);
		if (!task || cgroup_of(task) != cgroup)
			return true;
	}
	return false;
}

/* What the current task asks as: enum node_client; 0 for all others. */
static __always_inline u32 asks_as_node(void)
{
	u64 task = bpf_get_current_task();

	if (is_put_there(task))
		return NODE_PUT_THERE;
	return is_in_container(task) ? 0 : NODE_PROCESS;
}

static __always_inline bool leaves_node_out(const struct target_ref *target)
{
	u32 index = target->index;
	struct target_settings *settings = bpf_map_lookup_elem(&target_settings, &index);

	return settings && settings->exclude_node;
}

static __always_inline bool is_loopback(const u32 *address)
{
	if (is_ipv4(address))
		return (u8)address[3] == 127;
	return !address[0] && !address[1] && !address[2] && address[3] == bpf_htonl(1);
}

static __always_inline void read_ends(struct connection_ends *ends, const struct sock *sk, bool server)
{
	u32 *peer = server ? ends->client : ends->server, *own = server ? ends->server : ends->client;
	u16 port = bpf_ntohs(BPF_CORE_READ(sk, __sk_common.skc_dport));
	u16 own_port = BPF_CORE_READ(sk, __sk_common.skc_num);

	read_own_address(own, sk);
	peer[2] = bpf_htonl(0xffff);
	if (BPF_CORE_READ(sk, __sk_common.skc_family) == AF_INET6)
		BPF_CORE_READ_INTO((struct in6_addr *)peer, sk, __sk_common.skc_v6_daddr);
	else
		peer[3] = BPF_CORE_READ(sk, __sk_common.skc_daddr);
	ends->client_port = server ? port : own_port;
	ends->server_port = server ? own_port : port;
	if (is_loopback(peer))
		ends->network = BPF_CORE_READ(sk, __sk_common.skc_net.net, ns.inum);
}

static __always_inline u32 node_client_of(struct sock *sk)
{
	u64 key = (u64)sk;
	struct node_socket *known = bpf_map_lookup_elem(&node_sockets, &key);

	return known ? known->client : 0;
}

/* The client's socket, whose address this is, changes its state. */
__noinline int follow_node_client(u64 address, u32 state)
{
	struct node_socket *known, fresh = {};
	u64 key = address;

	if (state == TCP_SYN_SENT) {
		fresh.client = asks_as_node();
		/* Also what stands here of a socket whose end was missed, and which had the same address. */
		if (!fresh.client)
			bpf_map_delete_elem(&node_sockets, &key);
		else if (bpf_map_update_elem(&node_sockets, &key, &fresh, BPF_ANY))
			count_loss(TACHO_LOST_MAP_FULL);
		return 0;
	}
	known = bpf_map_lookup_elem(&node_sockets, &key);
	if (!known)
		return 0;
	if (state == TCP_ESTABLISHED) {
		fresh.client = known->client;
		read_ends(&fresh.ends, (const struct sock *)address, false);
		known->ends = fresh.ends;
		if (bpf_map_update_elem(&node_connections, &fresh.ends, &fresh.client, BPF_ANY))
			count_loss(TACHO_LOST_MAP_FULL);
	} else {
		fresh.ends = known->ends;
		bpf_map_delete_elem(&node_connections, &fresh.ends);
		bpf_map_delete_elem(&node_sockets, &key);
	}
	return 0;
}

__noinline u32 comes_from_node(u64 address)
{
	struct connection_ends ends = {};

	read_ends(&ends, (const struct sock *)address, true);
	return bpf_map_lookup_elem(&node_connections, &ends) ? true : false;
}

/* A connection has its role: is it one that the target leaves out? The target's own calls stay its own. */
static __always_inline void leave_node_out(struct sock *sk, struct socket_state *st)
{
	if ((st->role != TACHO_ROLE_SERVER && st->role != TACHO_ROLE_CLIENT) || !leaves_node_out(&st->target))
		return;
	if (st->role == TACHO_ROLE_SERVER) {
		if (is_unix(sk) || !comes_from_node(as_number(sk)))
			return;
		st->role = TACHO_ROLE_NODE_SERVER;
	} else {
		if (!(is_unix(sk) ? is_put_there(bpf_get_current_task())
				  : node_client_of(sk) == NODE_PUT_THERE))
			return;
		st->role = TACHO_ROLE_NODE_CLIENT;
	}
	st->http2 = HTTP2_OFF;
}

static __always_inline bool is_left_out(const struct socket_state *st)
{
	return st->role >= TACHO_ROLE_NODE_SERVER;
}
