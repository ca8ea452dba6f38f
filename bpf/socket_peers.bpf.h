/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Whom a target calls: a slot for each of its first max_peers peers, slot 0 for all others. */
#pragma once

#include "socket_state.bpf.h"

/* Set before loading. */
const volatile __u32 max_peers = 0;

/* By target index; each an array of max_peers + 1 struct dependency. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(__u32));
} dependency_blocks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1);
	__type(key, struct peer_key);
	__type(value, u32);
} dependency_slots SEC(".maps");

static __always_inline struct dependency *get_dependency(const struct target_ref *target, u32 slot)
{
	u32 index = target->index;
	void *block = bpf_map_lookup_elem(&dependency_blocks, &index);

	return block ? bpf_map_lookup_elem(block, &slot) : NULL;
}

static __always_inline void read_unix_address(struct peer_address *peer, struct sock *sk)
{
	struct unix_sock *other = (struct unix_sock *)BPF_CORE_READ((struct unix_sock *)sk, peer);
	struct unix_address *name = other ? BPF_CORE_READ(other, addr) : NULL;
	u32 length;

	if (!name)
		return;
	length = BPF_CORE_READ(name, len);
	if (length <= sizeof(u16))
		return;
	length -= sizeof(u16);
	/* What the compiler knows about it, the verifier may not: the limit must stand right before its use.
	 */
	barrier_var(length);
	if (length > TACHO_PEER_ADDRESS)
		length = TACHO_PEER_ADDRESS;
	bpf_probe_read_kernel(peer->address, length, BPF_CORE_READ(name, name[0].sun_path));
	peer->family = AF_UNIX;
}

static __always_inline void read_peer(struct peer_address *peer, struct sock *sk)
{
	u16 family = sk->__sk_common.skc_family;

	if (family == AF_UNIX) {
		read_unix_address(peer, sk);
		return;
	}
	if (!sk->__sk_common.skc_dport)
		return;
	peer->port = bpf_ntohs(sk->__sk_common.skc_dport);
	peer->family = family;
	if (family == AF_INET)
		BPF_CORE_READ_INTO((u32 *)peer->address, sk, __sk_common.skc_daddr);
	else
		BPF_CORE_READ_INTO((struct in6_addr *)peer->address, sk, __sk_common.skc_v6_daddr);
}

/* Once per connection. */
static __always_inline u32 find_peer_slot(const struct target_ref *target, struct sock *sk)
{
	struct peer_key key = {.index = target->index, .epoch = target->epoch};
	struct socket_chains *chains;
	struct dependency *dependency;
	u32 index = target->index;
	u32 *known, slot;

	read_peer(&key.peer, sk);
	if (!key.peer.family)
		return 0;
	known = bpf_map_lookup_elem(&dependency_slots, &key);
	if (known)
		return *known;
	chains = bpf_map_lookup_elem(&socket_chains, &index);
	if (!chains || chains->peers >= max_peers) {
		count_loss(TACHO_LOST_PEER_OVERFLOW);
		return 0;
	}
	slot = __sync_fetch_and_add(&chains->peers, 1) + 1;
	dependency = slot <= max_peers ? get_dependency(target, slot) : NULL;
	if (!dependency || bpf_map_update_elem(&dependency_slots, &key, &slot, BPF_NOEXIST)) {
		/* Two connections to a new peer at once: the loser's slot stays empty. */
		known = bpf_map_lookup_elem(&dependency_slots, &key);
		if (!known)
			count_loss(TACHO_LOST_PEER_OVERFLOW);
		return known ? *known : 0;
	}
	__builtin_memcpy(dependency->peer.address, key.peer.address, sizeof(key.peer.address));
	dependency->peer.port = key.peer.port;
	dependency->peer.family = key.peer.family;
	return slot;
}
