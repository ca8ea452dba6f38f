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

/* Names of networks, by index. */
struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1);
	__type(key, struct peer_network);
	__type(value, u32);
} peer_networks SEC(".maps");

/* Addresses of a configured network become its name; IPv4 on an IPv6 socket is IPv4. */
static __always_inline void read_internet_address(struct peer_address *peer, struct sock *sk)
{
	struct peer_network host = {.prefix_bits = 128};
	u32 words[4] = {0, 0, bpf_htonl(0xffff), FIELD(sk, __sk_common.skc_daddr)};
	u32 *name;

	if (FIELD(sk, __sk_common.skc_family) == AF_INET6)
		BPF_CORE_READ_INTO((struct in6_addr *)words, sk, __sk_common.skc_v6_daddr);
	__builtin_memcpy(host.address, words, sizeof(words));
	peer->port = bpf_ntohs(FIELD(sk, __sk_common.skc_dport));
	name = bpf_map_lookup_elem(&peer_networks, &host);
	if (name) {
		__builtin_memcpy(peer->address, name, sizeof(*name));
		peer->family = TACHO_PEER_NAMED;
	} else if (!words[0] && !words[1] && words[2] == bpf_htonl(0xffff)) {
		__builtin_memcpy(peer->address, &words[3], sizeof(words[3]));
		peer->family = AF_INET;
	} else {
		__builtin_memcpy(peer->address, words, sizeof(words));
		peer->family = AF_INET6;
	}
}

static __always_inline void read_peer(struct peer_address *peer, struct sock *sk)
{
	u16 family = FIELD(sk, __sk_common.skc_family);

	if (family == AF_UNIX) {
		read_unix_address(peer, sk);
		return;
	}
	if (FIELD(sk, __sk_common.skc_dport))
		read_internet_address(peer, sk);
}

/* Once per connection. A frame of its own: the stack of the hooks is short (512 bytes with all that they
 * call). */
static __noinline u32 find_peer_slot(const struct target_ref *target, struct sock *sk)
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
	slot = fetch_add_u32(&chains->peers, 1) + 1;
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
