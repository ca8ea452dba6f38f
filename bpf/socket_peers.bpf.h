/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* The peers that a target calls: a slot for each of the first max_peers, slot 0 for all others. */
#pragma once

#include "socket_datagram_address.bpf.h"
#include "socket_state.bpf.h"

/* Set before loading. */
const volatile __u32 max_peers = 0;

/* By target index; each an array of max_peers + 1 struct dependency. */
TARGET_BLOCKS(dependency_blocks);

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1);
	__type(key, struct peer_key);
	__type(value, u32);
} dependency_slots SEC(".maps");

static __always_inline struct dependency *get_dependency(const struct target_ref *target, u32 slot)
{
	return find_in_block(&dependency_blocks, target, slot);
}

static __always_inline void read_unix_address(struct peer_address *peer, struct sock *sk)
{
	struct unix_sock *other = (struct unix_sock *)BPF_CORE_READ((struct unix_sock *)sk, peer);
	struct unix_address *name = other ? BPF_CORE_READ(other, addr) : NULL;
	const char *path;
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
	/* BPF_CORE_READ of an array has a copy of it on the stack. */
	path = (const char *)name + bpf_core_field_offset(struct unix_address, name[0].sun_path);
	bpf_probe_read_kernel(peer->address, length, path);
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
static __always_inline void name_address(struct peer_address *peer, const struct datagram_address *address)
{
	struct peer_network host = {.prefix_bits = 128};
	const u32 *words = address->words;
	u32 *name;

	__builtin_memcpy(host.address, words, sizeof(host.address));
	peer->port = bpf_ntohs(address->port);
	name = bpf_map_lookup_elem(&peer_networks, &host);
	if (name) {
		__builtin_memcpy(peer->address, name, sizeof(*name));
		peer->family = TACHO_PEER_NAMED;
	} else if (is_ipv4(words)) {
		__builtin_memcpy(peer->address, &words[3], sizeof(words[3]));
		peer->family = AF_INET;
	} else {
		__builtin_memcpy(peer->address, words, sizeof(address->words));
		peer->family = AF_INET6;
	}
}

/* Of a connection, whose socket a global function has as a number: its members are read as memory. */
static __always_inline void read_peer(struct peer_address *peer, struct sock *sk)
{
	u16 family = BPF_CORE_READ(sk, __sk_common.skc_family);
	struct datagram_address address = {.words[2] = bpf_htonl(0xffff)};

	if (family == AF_UNIX) {
		read_unix_address(peer, sk);
		return;
	}
	address.port = BPF_CORE_READ(sk, __sk_common.skc_dport);
	if (!address.port)
		return;
	if (family == AF_INET6)
		BPF_CORE_READ_INTO((struct in6_addr *)address.words, sk, __sk_common.skc_v6_daddr);
	else
		address.words[3] = BPF_CORE_READ(sk, __sk_common.skc_daddr);
	name_address(peer, &address);
}

/* A number that is not given out yet, or was given back. */
static __always_inline u32 new_slot(struct socket_chains *chains)
{
	u32 spare = chains->spare ? exchange_u32(&chains->spare, 0) : 0;

	if (spare)
		return spare;
	return chains->peers < max_peers ? fetch_add_u32(&chains->peers, 1) + 1 : 0;
}

static __always_inline u32 slot_of_key(const struct peer_key *key)
{
	struct target_ref target = {.index = key->index, .epoch = key->epoch};
	struct socket_chains *chains;
	struct dependency *dependency;
	u32 *known, slot;

	known = bpf_map_lookup_elem(&dependency_slots, key);
	if (known)
		return *known;
	chains = bpf_map_lookup_elem(&socket_chains, &target.index);
	slot = chains ? new_slot(chains) : 0;
	dependency = slot && slot <= max_peers ? get_dependency(&target, slot) : NULL;
	if (!dependency) {
		/* Another connection to the same new peer may just have taken the last one. */
		known = bpf_map_lookup_elem(&dependency_slots, key);
		if (!known)
			count_loss(TACHO_LOST_PEER_OVERFLOW);
		return known ? *known : 0;
	}
	if (bpf_map_update_elem(&dependency_slots, key, &slot, BPF_NOEXIST)) {
		/* Another connection to the same new peer was faster. */
		exchange_u32(&chains->spare, slot);
		known = bpf_map_lookup_elem(&dependency_slots, key);
		if (!known)
			count_loss(TACHO_LOST_PEER_OVERFLOW);
		return known ? *known : 0;
	}
	__builtin_memcpy(dependency->peer.address, key->peer.address, sizeof(key->peer.address));
	dependency->peer.port = key->peer.port;
	dependency->peer.family = key->peer.family;
	return slot;
}

static __always_inline u64 first_half(const struct datagram_address *address)
{
	return (u64)address->words[0] << 32 | address->words[1];
}

static __always_inline u64 second_half(const struct datagram_address *address)
{
	return (u64)address->words[2] << 32 | address->words[3];
}

/*
 * Two global functions, of plain numbers: the verifier works through them once a program, also that of Linux
 * 5.10, and not once for each state in which a connection may be. They have frames of their own, too: the
 * stack of the hooks is short (512 bytes with all that they call).
 * @param target index and epoch
 */
__noinline u32 slot_of_address(u64 target, u64 begin, u64 end, u32 port)
{
	struct peer_key key = {.index = target >> 32, .epoch = target};
	struct datagram_address address = {.words = {begin >> 32, begin, end >> 32, end}, .port = port};

	name_address(&key.peer, &address);
	return slot_of_key(&key);
}

/* The peer of a connection. @param socket its address in the kernel */
__noinline u32 slot_of_connected(u64 target, u64 socket)
{
	struct peer_key key = {.index = target >> 32, .epoch = target};
	struct sock *sk = (struct sock *)socket;

	read_peer(&key.peer, sk);
	return key.peer.family ? slot_of_key(&key) : 0;
}

/* Once per connection, or once per peer of a datagram socket, which is then at `address`. */
static __always_inline u32 find_peer_slot(const struct target_ref *target, struct sock *sk,
					  const struct datagram_address *address)
{
	u64 number = (u64)target->index << 32 | target->epoch;

	if (!address)
		return slot_of_connected(number, as_number(sk));
	return slot_of_address(number, first_half(address), second_half(address), address->port);
}
