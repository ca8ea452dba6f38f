/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Calls of datagram sockets: from a send to the first thing that comes back from there. */
#pragma once

#include "socket_datagram_ring.bpf.h"
#include "socket_peers.bpf.h"

/* Calls to one peer that are under way. */
struct open_calls {
	u32 *open;
	u16 *run;    /* begun since the last answer */
	u64 *called; /* when the last one began */
	u32 slot;    /* of the dependency */
};

/* Answers have come: to calls, or unasked from someone who was called. */
static __always_inline void call_answered(const struct target_ref *target, struct socket_shard *shard,
					  const struct open_calls *calls, u32 count, u64 back)
{
	struct dependency *dependency = get_dependency(target, calls->slot);
	u32 run = *calls->run;

	count = take_from(calls->open, count);
	if (!dependency || !count)
		return;
	*calls->run = 0;
	if (run > 1)
		add(&shard->calls_overlapped, run - 1);
	observe_times_atomic(&dependency->duration, elapsed(*calls->called, back), count);
}

/* What was not answered in time never will be. */
static __always_inline void call_begun(const struct open_calls *calls, u32 count, u64 now)
{
	if (now - *calls->called > DATAGRAM_PATIENCE_NS)
		*calls->open = *calls->run = 0;
	*calls->called = now;
	*calls->run += count;
	__sync_fetch_and_add(calls->open, count);
}

static __always_inline struct open_calls calls_to(struct datagram_peer *peer)
{
	return (struct open_calls){&peer->open, &peer->run, &peer->seen, peer->first};
}

/* Distinguishes the peers that a UDP socket of IPv4 or IPv6 is connected to, one after another. */
static __always_inline u64 connected_to(struct sock *sk)
{
	u64 end = FIELD(sk, __sk_common.skc_daddr);

	if (FIELD(sk, __sk_common.skc_family) == AF_INET6)
		end = (u64)FIELD(sk, __sk_common.skc_v6_daddr.in6_u.u6_addr32[1]) << 32 ^
		      (u64)FIELD(sk, __sk_common.skc_v6_daddr.in6_u.u6_addr32[2]) << 16 ^
		      FIELD(sk, __sk_common.skc_v6_daddr.in6_u.u6_addr32[3]);
	return mix(end, FIELD(sk, __sk_common.skc_dport)) | 1;
}

/*
 * Has connect(2) given a socket that only calls its first peer, or another one? Its slot has still to be
 * found: by the caller, since the frames of all that calls each other are 512 bytes together.
 */
static __noinline int calls_another(struct sock *sk, struct socket_state *st)
{
	u64 connected = connected_to(sk);

	if (st->called == connected)
		return 0;
	st->called = connected;
	st->calls_open = st->calls_run = 0;
	return 1;
}

static __always_inline struct open_calls calls_of(struct socket_state *st)
{
	return (struct open_calls){&st->calls_open, &st->calls_run, &st->last_send, st->peer};
}
