/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* A datagram has arrived: the hook of that may run before, after or while it is received. */
#pragma once

#include "socket_datagram_ring.bpf.h"

static __always_inline bool is_called(struct socket_state *st, u64 source)
{
	struct datagram_peer *peer = source ? find_datagram_peer(peer_id(st, source)) : NULL;

	return peer && peer->role == PEER_CALLED;
}

/*
 * Without a ring: datagrams of whose arrival hooks have told, and that are not received, before one that has
 * come now. Hooks that were kept from us are made up for. A read may be under way on another CPU: it is
 * missing from both or, as `read` is looked at first, from the sum.
 */
static __always_inline u32 unread_before(struct sock *sk, struct socket_state *st)
{
	u32 come = *(volatile u32 *)&st->read;

	come += surely_waiting(sk) - 1;
	if ((s32)(come - st->told) > 0)
		st->told = come;
	come = st->told - st->read;
	return (s32)come > 0 ? come : 0;
}

/* Without a ring: who has sent what was just received. The hook of its arrival may be late, on another CPU.
 */
static __always_inline u64 source_of_read(struct sock *sk, struct socket_state *st)
{
	if ((s32)(st->told - st->read++) > 0 || !is_udp(sk))
		return st->source;
	doubt(st);
	st->slips++;
	return ADDRESS_UNKNOWN;
}

/* NULL: all have been received. */
static __always_inline struct sk_buff *newest_datagram(struct sock *sk)
{
	struct sk_buff *last = NULL;

	if (FIELD(sk, sk_receive_queue.qlen))
		last = BPF_CORE_READ(sk, sk_receive_queue.prev);
	else if (is_udp(sk) && BPF_CORE_READ((struct udp_sock *)sk, reader_queue.qlen))
		last = BPF_CORE_READ((struct udp_sock *)sk, reader_queue.prev);
	/* An empty queue's neighbours are itself. */
	if ((void *)last == (void *)&sk->sk_receive_queue ||
	    (is_udp(sk) && (void *)last == (void *)&((struct udp_sock *)sk)->reader_queue))
		return NULL;
	return last;
}

static __always_inline bool is_still_queued(struct sock *sk, struct sk_buff *skb)
{
	struct sk_buff *last = newest_datagram(sk);

	return last == skb || (last && BPF_CORE_READ(skb, next, prev) == skb);
}

static __always_inline void datagram_arrived(struct sock *sk, struct socket_state *st, u64 now)
{
	struct arrival arrival = {.source = ADDRESS_SOLE, .count = 1};
	struct datagram_ring *ring = find_ring(st);
	struct sk_buff *last = newest_datagram(sk);

	if (!last)
		goto late;
	if (is_udp(sk)) {
		read_arrival(&arrival, last);
		/* If it has been received while we looked, what we saw may be something else's. */
		if (!is_still_queued(sk, last))
			goto late;
		if (arrival.quic)
			st->many = true;
		if (st->role == TACHO_ROLE_DATAGRAM_SERVER)
			arrival.source = ADDRESS_SOLE;
	}
	if (!ring) {
		u32 older = unread_before(sk, st);

		/* A socket that only calls needs none. */
		if (is_called(st, arrival.source) && (!older || st->source == arrival.source)) {
			/* In this order: a read on another CPU takes it for the source of what is told. */
			st->source = arrival.source;
			__sync_fetch_and_add(&st->told, 1);
			return;
		}
		ring = make_ring(st, st->source, older, now);
		/* Its read may have made the ring, and a slot for it, while we looked. */
		if (!ring || (is_udp(sk) && !is_still_queued(sk, last)))
			return;
	}
	ring_arrived(ring, &arrival, (u64)last, now);
	return;
late:
	/* Not told: the hook of its read may still be to come, and would take what came before for its
	 * sender. */
	if (!ring)
		st->arrival = 0;
}
