/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Which slot of a ring (socket_datagram_ring.bpf.h) is that of the datagram that has just been received.
 *
 * No hook says which one it was. The hooks of arrivals may be late, of several datagrams one may be told of
 * twice and another one not at all. But what is still waiting is in the socket's queues: what was received
 * stands right before it.
 */
#pragma once

#include "socket_datagram_ring.bpf.h"

/* Of what waits, so much is looked at. */
#define LOOKED_AT 4

/* The datagrams that will be received next, as in slots; 0: no more are waiting. */
static __always_inline void read_queue(struct sock *sk, u32 *waiting)
{
	u32 first = is_udp(sk) ? BPF_CORE_READ((struct udp_sock *)sk, reader_queue.qlen) : 0;
	u32 all = first + FIELD(sk, sk_receive_queue.qlen);
	struct sk_buff *skb = NULL;

	if (first)
		skb = BPF_CORE_READ((struct udp_sock *)sk, reader_queue.next);
	_Pragma("unroll") for (u32 i = 0; i < LOOKED_AT; i++)
	{
		if (i == first)
			skb = BPF_CORE_READ(sk, sk_receive_queue.next);
		waiting[i] = i < all ? (u64)skb : 0;
		if (i + 1 < all)
			skb = BPF_CORE_READ(skb, next);
	}
}

#define NO_SLOT (~0U)

/*
 * Of the slots that are left, how many stand before that of the datagram that has just been received: these
 * stand for nothing, for it was dropped after it had come (a wrong checksum), or told twice. NO_SLOT: its
 * arrival was not told, and the first slot is that of a datagram which waits.
 */
static __noinline u32 slots_before(struct sock *sk, const struct datagram_ring *ring)
{
	u32 waiting[LOOKED_AT], first = ring->taken, told = ring->arrived - first;

	if (!told || told > DATAGRAM_SLOTS)
		return 0;
	read_queue(sk, waiting);
	if (!waiting[0])
		return told - 1;
	for (u32 i = 0; i < LOOKED_AT && i < told; i++) {
		const struct datagram_slot *slot = &ring->slots[(first + i) % DATAGRAM_SLOTS];
		u32 skb = slot->skb;

		if (*(const volatile u32 *)&slot->lap != first + i + 1)
			return i ? i - 1 : 0; /* it is being written */
		if (!skb ||
		    (skb != waiting[0] && skb != waiting[1] && skb != waiting[2] && skb != waiting[3]))
			continue;
		/* Or the memory of what was received is in use again. */
		if (!i && told > 1 && ring->slots[(first + 1) % DATAGRAM_SLOTS].skb == skb)
			return 0;
		return i ? i - 1 : NO_SLOT;
	}
	/* What is waiting is not told yet. */
	return told <= LOOKED_AT ? told - 1 : 0;
}

/*
 * The slot of the datagram that has just been received; NULL if it was overwritten, for too many are
 * waiting. @param before as slots_before() says
 */
static __always_inline struct datagram_slot *take_slot(struct socket_state *st, struct datagram_ring *ring,
						       u32 before, u64 source, u32 bytes, u64 now)
{
	u32 waiting = ring->arrived - ring->taken;
	struct datagram_slot *slot;
	u32 number;

	if (!waiting || waiting >= 1U << 31) {
		/* Nothing has told its arrival yet. */
		doubt(st);
		number = fill_slot(ring, now, source, count_by_size(ring, bytes), 0);
		ring->newest = number;
		ring->taken = number + 1;
		ring->told_last = 0;
		return &ring->slots[number % DATAGRAM_SLOTS];
	}
	number = fetch_add_u32(&ring->taken, 1);
	if (before) {
		number += before;
		waiting -= before;
		ring->taken = number + 1;
	}
	ring->newest = number;
	slot = &ring->slots[number % DATAGRAM_SLOTS];
	/* The next one may be at the same place. */
	if ((u32)ring->told_last == slot->skb)
		ring->told_last = 0;
	return waiting > DATAGRAM_SLOTS ? NULL : slot;
}
