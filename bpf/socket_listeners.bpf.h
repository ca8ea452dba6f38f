/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* The sockets that listen, and their ports; which connections are theirs whose beginning was missed. */
#pragma once

#include "socket_storage.bpf.h"

static __always_inline struct listening_port port_of(struct sock *sk)
{
	struct listening_port key = {
	    .network = BPF_CORE_READ(sk, __sk_common.skc_net.net, ns.inum),
	    .port = FIELD(sk, __sk_common.skc_num),
	};

	return key;
}

/* Sockets that listen, by address; value: where. An iterator comes upon a socket once a descriptor. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 16384);
	__type(key, u64);
	__type(value, struct listening_port);
} listening_sockets SEC(".maps");

static __always_inline void remove_listener(u64 socket)
{
	struct listening_port *found = bpf_map_lookup_elem(&listening_sockets, &socket), port;
	u32 *count;

	if (!found)
		return;
	port = *found;
	if (bpf_map_delete_elem(&listening_sockets, &socket))
		return;
	count = bpf_map_lookup_elem(&listening_ports, &port);
	if (!count)
		return;
	if (*count <= 1)
		bpf_map_delete_elem(&listening_ports, &port);
	else
		__sync_fetch_and_add(count, -1);
}

static __always_inline void add_listener(u64 socket, const struct listening_port *port)
{
	struct listening_port *known = bpf_map_lookup_elem(&listening_sockets, &socket);
	u32 *count, one = 1;
	long failed;

	if (known && known->network == port->network && known->port == port->port)
		return;
	/* The address of one that was closed unseen. */
	if (known)
		remove_listener(socket);
	failed = bpf_map_update_elem(&listening_sockets, &socket, port, BPF_NOEXIST);
	if (failed && failed != -EEXIST)
		count_loss(TACHO_LOST_MAP_FULL);
	if (failed)
		return;
	count = bpf_map_lookup_elem(&listening_ports, port);
	if (count)
		__sync_fetch_and_add(count, 1);
	else if (bpf_map_update_elem(&listening_ports, port, &one, BPF_ANY))
		count_loss(TACHO_LOST_MAP_FULL);
}

/* A socket that listens. Without bind(2) it has no port yet when its state changes; iterators find it later.
 */
static __always_inline void note_listener(struct sock *sk)
{
	struct listening_port key = port_of(sk);

	if (key.port)
		add_listener((u64)sk, &key);
}

/*
 * Which end of a connection is it whose birth was not seen? What was accepted began as a copy of the
 * listening socket, with its backlog, but without the note that its program has chosen the port
 * (sk_clone_lock()). Where it shows neither, as with a backlog of 0, somebody listens on the port of a
 * server; a client gets there with SO_REUSEPORT only. What comes from a checkpoint has chosen its port at
 * either end.
 */
static __always_inline u8 stream_role(struct sock *sk)
{
	struct sock *shown = is_mptcp(sk) ? (struct sock *)subflow_of(sk) : sk;
	struct listening_port key;

	if (chose_port(shown) && BPF_CORE_READ_BITFIELD_PROBED(shown, __sk_common.skc_reuseport))
		return TACHO_ROLE_CLIENT;
	if (BPF_CORE_READ(shown, sk_max_ack_backlog))
		return TACHO_ROLE_SERVER;
	key = port_of(sk);
	return bpf_map_lookup_elem(&listening_ports, &key) ? TACHO_ROLE_SERVER : TACHO_ROLE_CLIENT;
}
