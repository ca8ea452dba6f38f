/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * The peer that a socket answers, where the sender of the request is unknown.
 *
 * A request of an unknown sender is taken to be answered by what is sent to a new peer next. A server that
 * asks others for its answers (a resolver, a proxy of SIP) sends that to its upstream. So the guess is looked
 * at once more when that peer sends something for the first time: a client waits for its own reply, behind
 * an upstream's answer comes a reply to somebody else, of whom no open request is known.
 */
#pragma once

#include "socket_datagram_calls.bpf.h"
#include "socket_datagram_ring.bpf.h"

static __always_inline void guess(struct datagram_ring *ring, const struct departure *to, u64 now)
{
	/* The first one stays in question until something comes from there. */
	if (ring->guessed && now - ring->guessed_at < DATAGRAM_PATIENCE_NS)
		return;
	ring->guessed = to->destination;
	ring->guessed_at = now;
	ring->guessed_address = to->address;
}

/*
 * Something goes to `destination`. @return whether it is the reply to the request that was taken for
 * answered: that is counted already
 */
static __noinline bool guess_was_wrong(struct socket_state *st, u64 destination, u64 last_receive)
{
	struct datagram_ring *ring = find_ring(st);
	struct datagram_slot *newest;
	struct datagram_peer *peer;

	if (!ring || last_receive != ring->last_read || ring->slotless)
		return false;
	newest = &ring->slots[ring->newest % DATAGRAM_SLOTS];
	if (newest->source != ring->guessed || !newest->open || !newest->read)
		return false;
	peer = find_datagram_peer(peer_id(st, ring->guessed));
	if (peer && peer->role == PEER_SERVED && destination != ring->guessed && !ring->anonymous) {
		peer = find_datagram_peer(peer_id(st, destination));
		if (!peer || (peer->role == PEER_SERVED && !peer->open))
			return true;
	}
	ring->guessed = 0;
	return false;
}

/* The one that was taken for a client was called, and what it has sent is the answer. @param slot its own */
static __noinline void take_for_called(struct socket_state *st, struct socket_shard *shard, u32 slot)
{
	struct datagram_ring *ring = find_ring(st);
	struct datagram_peer *peer = ring ? find_datagram_peer(peer_id(st, ring->guessed)) : NULL;
	struct datagram_slot *answer;
	struct open_calls calls;
	u32 count;

	if (!peer)
		return;
	answer = &ring->slots[ring->newest % DATAGRAM_SLOTS];
	count = take_from(&ring->open, answer->open);
	add(&shard->dismissed, count);
	answer->open = 0;
	peer->role = PEER_CALLED;
	peer->open = peer->run = 0;
	peer->first = slot;
	peer->has_answered = true;
	calls = calls_to(peer);
	call_begun(&calls, count, ring->guessed_at);
	call_answered(&st->target, shard, &calls, count, answer->arrival);
	st->has_called = true;
	st->called = ring->guessed;
	ring->guessed = 0;
	/* What was in doubt was this one. */
	st->doubts = 0;
}
