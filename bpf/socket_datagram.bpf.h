/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Requests and calls of datagram sockets.
 *
 * A socket may serve and call at once: what it exchanges with a peer is decided by who spoke first. Which
 * request of a peer a reply answers is not known at this layer; they are taken to be answered in the order of
 * their receipt, but where nothing was received between a request and a send, that answers it. Whatever the
 * true order, the number and the sum of the durations are the same, if all are answered.
 */
#pragma once

#include "socket_binding.bpf.h"
#include "socket_datagram_answers.bpf.h"
#include "socket_datagram_arrival.bpf.h"
#include "socket_datagram_guess.bpf.h"
#include "socket_datagram_sender.bpf.h"
#include "socket_datagram_slots.bpf.h"

/* The socket serves for the first time. @return whether its target names the port */
static __always_inline bool begin_to_serve(struct sock *sk, struct socket_state *st)
{
	if (!is_unix(sk)) {
		struct listening_port key = port_of(sk);

		if (!port_is_wanted(&st->target, key.port)) {
			if (!st->has_called)
				st->role = TACHO_ROLE_IGNORED;
			return false;
		}
		serve_port(sk);
	}
	st->has_served = true;
	return true;
}

/* Requests that are open for another target are dropped. */
static __always_inline void retarget(struct datagram_ring *ring, const struct socket_state *st)
{
	if (ring->target.index == st->target.index && ring->target.epoch == st->target.epoch)
		return;
	forget(ring, ring->open);
	ring->target = st->target;
	ring->anonymous = ring->buried[0] = ring->buried[1] = 0;
}

static __always_inline void request_received(struct datagram_ring *ring, struct datagram_slot *slot,
					     struct datagram_peer *peer, u32 count, u64 arrival, u64 now)
{
	u64 wait = elapsed(arrival, now) >> READ_SHIFT;

	if (peer) {
		peer_asks(ring, peer, count, now);
	} else {
		__sync_fetch_and_add(&ring->anonymous, count);
	}
	__sync_fetch_and_add(&ring->open, count);
	ring->last_read = now;
	ring->touched = now;
	if (slot)
		slot->read = wait >= READ_FORGOTTEN - 1 ? READ_FORGOTTEN - 1 : wait + 1;
	else
		bury(ring, count, arrival, now);
}

static __always_inline void datagram_received(struct sock *sk, struct socket_state *st,
					      struct socket_shard *shard, u32 bytes, u64 now)
{
	u64 arrival = st->arrival ? st->arrival : now;
	struct datagram_ring *ring = find_ring(st);
	u64 source = ADDRESS_SOLE;
	struct datagram_slot *slot = NULL;
	struct datagram_peer *peer;
	struct open_calls calls;
	u32 slotless = 0, count = 1, before;

	st->arrival = 0;
	st->peeked = 0;
	if (st->role == TACHO_ROLE_DATAGRAM_CLIENT) {
		calls = calls_of(st);
		call_answered(&st->target, shard, &calls, 1, arrival);
		return;
	}
	if (ring && ring->sender_at) {
		if (ring->anonymous)
			name_sender(sk, st, shard, ADDRESS_UNKNOWN, now);
		ring->sender_at = 0;
	}
	if (ring)
		note_datagram_reader(st, ring);
	if (st->role != TACHO_ROLE_DATAGRAM_SERVER)
		source = ring ? ADDRESS_UNKNOWN : source_of_read(sk, st);
	before = ring ? slots_before(sk, st, ring) : 0;
	if (before == NO_SLOT) {
		doubt(st);
		st->slips++;
		arrival = ring->slots[ring->taken % DATAGRAM_SLOTS].arrival;
		slotless = count = count_by_size(ring, bytes);
	} else if (ring) {
		slot = take_slot(st, ring, before, source, bytes, now);
		if (!slot) {
			arrival = oldest_arrival(ring, now);
		} else if (is_written(st, ring, ring->newest)) {
			arrival = slot->arrival;
			source = slot->source;
			count = slot->open;
		} else {
			/* The hook of its arrival still runs, on another CPU. */
			slot = NULL;
			slotless = count = count_by_size(ring, bytes);
			st->slips++;
		}
	}
	socket_number(st);
	peer = sender(sk, st, source, now);
	if (peer && peer->role == PEER_CALLED && !peer->open && !peer->by_others && dispel_doubt(st)) {
		/* Rather somebody's who has been taken for the one that was called. */
		peer = called_earlier(st);
		source = ADDRESS_UNKNOWN;
		if (slot)
			slot->source = source;
	}
	if (peer && peer->role == PEER_CALLED) {
		if (slot)
			slot->open = 0;
		calls = calls_to(peer);
		peer->has_answered |= source != ADDRESS_UNKNOWN;
		call_answered(&st->target, shard, &calls, count, arrival);
		return;
	}
	if (!st->has_served && !begin_to_serve(sk, st)) {
		if (slot)
			slot->open = 0;
		return;
	}
	if (!ring) {
		ring = make_ring(st, source, 0, now);
		if (!ring)
			return;
		note_datagram_reader(st, ring);
		slot = take_slot(st, ring, 0, source, bytes, now);
		if (slot && !is_written(st, ring, ring->newest)) {
			slot = NULL;
			slotless = count;
		}
		if (slot) {
			slot->arrival = arrival;
			slot->source = source;
		}
	}
	retarget(ring, st);
	ring->slotless = slotless;
	if (peer)
		peer->unheard = !st->has_replied;
	request_received(ring, slot, peer, count, arrival, now);
	ring->is_named = false;
	if (is_udp(sk) && (!peer || st->doubts))
		note_sender(ring);
	add(&shard->opened, count);
	observe_times(&shard->queue, elapsed(arrival, now), count);
}

/* `count` requests are answered. */
static __always_inline void reply_sent(struct socket_state *st, struct socket_shard *shard,
				       struct datagram_ring *ring, struct datagram_peer *peer, u64 source,
				       u32 count, u64 now, u64 last_receive)
{
	struct datagram_slot *newest = &ring->slots[ring->newest % DATAGRAM_SLOTS];
	struct answered *answered;
	bool at_once = last_receive == ring->last_read && newest->read && newest->open >= count &&
		       (source == ADDRESS_ANY || newest->source == source);
	/* What is forgotten is not looked through for what was read right before. */
	u32 slotless = last_receive == ring->last_read ? ring->slotless : 0;
	u32 missing, live, late, zero = 0;
	u64 arrivals, reads;

	st->has_replied = true;
	ring->slotless = slotless - smaller(slotless, count);
	close_requests(st->number, source,
		       at_once ? ring->newest
		       : peer  ? peer->first
			       : ring->taken - DATAGRAM_SLOTS,
		       slotless ? 0 : count);
	answered = bpf_map_lookup_elem(&answered_requests, &zero);
	if (!answered)
		return;
	if (peer && !at_once && !slotless)
		peer->first = answered->next;
	if (source == ADDRESS_ANY) {
		peer = answered->source ? find_datagram_peer(peer_id(st, answered->source)) : NULL;
		take_from(peer ? &peer->open : &ring->anonymous, count);
	}
	arrivals = answered->arrivals;
	reads = answered->reads;
	late = answered->late;
	missing = count - answered->count;
	if (missing) {
		bool is_buried = !slotless && ring->buried[0] + ring->buried[1];
		u64 oldest = slotless ? last_receive : oldest_arrival(ring, now);

		arrivals += (is_buried ? ring->buried_came : oldest) * missing;
		reads += (is_buried ? ring->buried_read : oldest) * missing;
		late += missing - unbury(ring, missing);
	}
	live = take_from(&ring->open, count - smaller(late, count));
	if (count > live)
		add(&shard->opened, count - live);
	if (count > 1) {
		arrivals /= count;
		reads /= count;
	}
	observe_times(&shard->service, elapsed(reads, now), count);
	observe_times(&shard->duration, elapsed(arrivals, now), count);
	if (st->many)
		add(&shard->overlapped_turns, count);
}

/*
 * What was read right before, and is not answered, is somebody's who is not known: rather than what its peer
 * sent earlier, that is answered.
 */
static __always_inline bool follows_unknown(const struct datagram_ring *ring, u64 last_receive)
{
	const struct datagram_slot *newest = &ring->slots[ring->newest % DATAGRAM_SLOTS];

	return ring->anonymous && last_receive == ring->last_read &&
	       (ring->slotless || (newest->open && newest->read && newest->source == ADDRESS_UNKNOWN));
}

/* Something goes to someone who asked before: a reply, or more of one. */
static __always_inline void served_sent(struct socket_state *st, struct socket_shard *shard,
					struct datagram_peer *peer, u64 source, u32 count, u64 now,
					u64 last_receive)
{
	struct datagram_ring *ring = find_ring(st);
	u32 open = 0;

	if (!ring)
		return;
	retarget(ring, st);
	ring->touched = now;
	if (peer && !follows_unknown(ring, last_receive))
		open = take_from(&peer->open, count);
	if (!open) {
		/* Whoever it was whose sender is not known. */
		source = ADDRESS_UNKNOWN;
		peer = NULL;
		open = take_from(&ring->anonymous, count);
		if (!open && now - ring->gone_at < LATE_REPLIES_NS)
			open = take_from(&ring->gone, count);
		if (!open && ring->open && (dispel_doubt(st) || dispel_swap(ring))) {
			/* Or somebody else's who has been taken for the sender. */
			source = ADDRESS_ANY;
			open = 1;
		}
	}
	if (open)
		reply_sent(st, shard, ring, peer, source, open, now, last_receive);
	else
		add(&shard->overlapped_turns, 1);
}

static __always_inline void datagram_sent(struct sock *sk, struct socket_state *st,
					  struct socket_shard *shard, u32 bytes, u64 now, u64 last_receive)
{
	struct departure to = {};
	struct datagram_ring *ring;
	struct datagram_peer *peer;
	struct open_calls calls;
	u32 count = 1;
	u64 id;

	if (st->role == TACHO_ROLE_DATAGRAM_CLIENT && is_udp(sk) && !FIELD(sk, __sk_common.skc_dport))
		st->role = TACHO_ROLE_DATAGRAM; /* connect(2) has taken its peer away */
	if (is_udp(sk)) {
		to.segment_bytes = BPF_CORE_READ((struct udp_sock *)sk, gso_size);
		read_departure(&to, sk, st);
	}
	if (to.segment_bytes && bytes > to.segment_bytes)
		count = (bytes + to.segment_bytes - 1) / to.segment_bytes;
	if (st->role == TACHO_ROLE_DATAGRAM_CLIENT) {
		if (is_udp(sk) && calls_another(sk, st))
			st->peer = find_peer_slot(&st->target, sk, NULL);
		calls = calls_of(st);
		call_begun(&calls, count, now);
		return;
	}
	socket_number(st);
	if (st->role == TACHO_ROLE_DATAGRAM_SERVER)
		to.destination = ADDRESS_SOLE;
	prove_role(sk, st, to.destination);
	ring = find_ring(st);
	id = peer_id(st, to.destination == ADDRESS_UNKNOWN ? ADDRESS_SOLE : to.destination);
	if (st->peeked && st->peeked == to.destination)
		answers_peeked(id, st->slips, now);
	peer = find_datagram_peer(id);
	if (ring && ring->sender_at) {
		if (!peer || ring->anonymous) {
			name_sender(sk, st, shard, to.destination, now);
			peer = find_datagram_peer(id);
		}
		/* By the next call the place may be something else's. */
		ring->sender_at = 0;
	}
	if (peer && may_ask_each_other(sk, to.destination))
		note_turn(id, turn_to_peer(st, ring, now), now);
	if (ring && ring->guessed && guess_was_wrong(st, to.destination, last_receive)) {
		take_for_called(st, shard, find_peer_slot(&st->target, sk, &ring->guessed_address));
		if (!peer)
			add_datagram_peer(id, PEER_SERVED, st->slips, now);
		return;
	}
	if (!peer || peer->role != PEER_CALLED) {
		bool doubted =
		    ring && ring->open && (st->doubts || ring->swaps) && !st->has_called && !ring->is_named;

		if (to.destination == ADDRESS_UNKNOWN && ring && ring->open) {
			reply_sent(st, shard, ring, NULL, ADDRESS_ANY, smaller(count, ring->open), now,
				   last_receive);
			return;
		}
		if (peer || (ring && ring->anonymous) || doubted ||
		    has_served_before(sk, st, to.destination) || st->role == TACHO_ROLE_DATAGRAM_SERVER) {
			if (!peer && to.destination != ADDRESS_UNKNOWN) {
				peer = add_datagram_peer(id, PEER_SERVED, st->slips, now);
				if (ring && is_udp(sk))
					guess(ring, &to, now);
			}
			served_sent(st, shard, peer, to.destination, count, now, last_receive);
			return;
		}
		peer = add_datagram_peer(id, PEER_CALLED, st->slips, now);
		if (!peer)
			return;
		if (to.destination != ADDRESS_UNKNOWN)
			peer->first = SLOT_TO_BE_FOUND;
	}
	if (peer->first == SLOT_TO_BE_FOUND)
		peer->first = find_peer_slot(&st->target, sk, &to.address);
	st->has_called = true;
	if (st->called != to.destination)
		st->called_before = st->called;
	st->called = to.destination;
	calls = calls_to(peer);
	call_begun(&calls, count, now);
}
