/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Which slot of a ring (socket_datagram_ring.bpf.h) is that of the datagram that has just been received.
 *
 * No hook shows which one it was. The hooks of arrivals may be late, of several datagrams one may be told of
 * twice and another one not at all. But what is still waiting is in the socket's queues: what was received
 * stands right before it.
 */
#pragma once

#include "socket_datagram_ring.bpf.h"

/* So many of the waiting datagrams are examined. */
#define LOOKED_AT 4

/* The datagrams that are waiting: first those of the reader's own queue, which UDP has. */
struct waiting_datagrams {
	u32 of_reader;
	u32 all;
	struct sk_buff *next; /* will be received next, if any is waiting */
};

static __always_inline struct waiting_datagrams datagrams_waiting(struct sock *sk)
{
	struct waiting_datagrams waiting = {};

	if (is_udp(sk))
		waiting.of_reader = BPF_CORE_READ((struct udp_sock *)sk, reader_queue.qlen);
	waiting.all = waiting.of_reader + FIELD(sk, sk_receive_queue.qlen);
	if (waiting.of_reader)
		waiting.next = BPF_CORE_READ((struct udp_sock *)sk, reader_queue.next);
	else if (waiting.all)
		waiting.next = BPF_CORE_READ(sk, sk_receive_queue.next);
	return waiting;
}

/* The first ones of them, as in slots; 0: there are no more. */
static __always_inline void read_queue(struct sock *sk, const struct waiting_datagrams *waiting, u32 *queue)
{
	struct sk_buff *skb = waiting->next;

	_Pragma("unroll") for (u32 i = 0; i < LOOKED_AT; i++)
	{
		if (i && i == waiting->of_reader)
			skb = BPF_CORE_READ(sk, sk_receive_queue.next);
		queue[i] = i < waiting->all ? (u64)skb : 0;
		if (i + 1 < waiting->all)
			skb = BPF_CORE_READ(skb, next);
	}
}

static __always_inline bool is_slot_of(const struct datagram_ring *ring, u32 number, u32 skb)
{
	return is_in_place(ring, number) && ring->slots[number % DATAGRAM_SLOTS].skb == skb;
}

#define NO_SLOT (~0U)

/*
 * Of the slots that are left, how many stand before that of the datagram that has just been received: these
 * stand for nothing, for it was dropped after it had come (a wrong checksum), or told twice. NO_SLOT: its
 * arrival was not told, and the first slot is that of a datagram which waits.
 */
static __noinline u32 slots_before(struct sock *sk, const struct socket_state *st,
				   const struct datagram_ring *ring)
{
	u32 queue[LOOKED_AT], first = ring->taken, told = ring->arrived - first;
	struct waiting_datagrams waiting;

	if (!told || told > DATAGRAM_SLOTS)
		return 0;
	waiting = datagrams_waiting(sk);
	if (!waiting.all)
		return told - 1;
	/* All was told in order; or the memory of what was received is in use again. */
	if (told > 1 && is_slot_of(ring, first + 1, (u64)waiting.next))
		return 0;
	read_queue(sk, &waiting, queue);
	for (u32 i = 0; i < LOOKED_AT && i < told; i++) {
		u32 skb;

		if (!is_written(st, ring, first + i))
			return i ? i - 1 : NO_SLOT;
		skb = ring->slots[(first + i) % DATAGRAM_SLOTS].skb;
		if (skb && (skb == queue[0] || skb == queue[1] || skb == queue[2] || skb == queue[3]))
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
		/* No hook has run for its arrival yet. */
		doubt(st);
		st->slips += source == ADDRESS_UNKNOWN;
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
	if ((u32)ring->told_last == (slot->skb ^ (u32)slot->source))
		ring->told_last = 0;
	return waiting > DATAGRAM_SLOTS ? NULL : slot;
}

/*
 * A datagram was looked at, and stays unread. A server that sends a cookie before it reads (DTLS) has been
 * asked all the same: what it sends to this peer next is no call. Who has sent it stands in the queue: the
 * hook of its arrival may be late.
 */
static __noinline int datagram_peeked(struct sock *sk, struct socket_state *st)
{
	struct sk_buff *first = datagrams_waiting(sk).next;
	struct arrival arrival = {};

	if (!first)
		return 0;
	read_arrival(&arrival, first);
	/* Received meanwhile, it may have been something else's. */
	if (datagrams_waiting(sk).next == first)
		st->peeked = arrival.source;
	return 0;
}

/* Something goes to who has sent what was only looked at. A global function: verified once a program. */
__noinline int answers_peeked(u64 id, u32 slips, u64 now)
{
	struct datagram_peer *peer = find_datagram_peer(id);

	if (peer)
		return 0;
	peer = add_datagram_peer(id, PEER_SERVED, slips, now);
	/* Nothing has been read from there. */
	if (peer)
		peer->balance = 0;
	return 0;
}
