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
#include "socket_datagram_ring.bpf.h"
#include "socket_peers.bpf.h"

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
		if (!ring)
			return;
	}
	ring_arrived(ring, &arrival, now);
	return;
late:
	/* Not told: the hook of its read may still be to come, and would take what came before for its
	 * sender. */
	if (!ring)
		st->arrival = 0;
}

/* Calls to one peer that are under way. */
struct open_calls {
	u32 *open;
	u32 *run;    /* begun since the last answer */
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

static __always_inline struct open_calls calls_of(struct socket_state *st)
{
	return (struct open_calls){&st->calls_open, &st->calls_run, &st->last_send, st->peer};
}

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

/* Of what is open for another target no more is heard. */
static __always_inline void retarget(struct datagram_ring *ring, const struct socket_state *st)
{
	if (ring->target.index == st->target.index && ring->target.epoch == st->target.epoch)
		return;
	forget(ring, ring->open);
	ring->target = st->target;
	ring->anonymous = ring->buried[0] = ring->buried[1] = 0;
}

/*
 * A peer has sent something without having been called. Of a socket that is older than we are, one that has a
 * port from the kernel and hears from a fixed one has called.
 */
static __always_inline bool has_called_before(struct sock *sk, const struct socket_state *st, u64 source)
{
	return st->older && FIELD(sk, __sk_common.skc_num) >= FIRST_EPHEMERAL_PORT &&
	       port_of_address(source) < FIRST_EPHEMERAL_PORT;
}

/* The other way round; or a client of a server's has got a socket of its own (DTLS). */
static __always_inline bool has_served_before(struct sock *sk, const struct socket_state *st, u64 destination)
{
	if (FIELD(sk, __sk_common.skc_dport))
		return serves_beside(sk);
	return st->older && FIELD(sk, __sk_common.skc_num) < FIRST_EPHEMERAL_PORT &&
	       port_of_address(destination) >= FIRST_EPHEMERAL_PORT;
}

/* Where calls to everybody (broadcast, multicast) are: whoever answers was called. */
static __always_inline struct datagram_peer *called_with_all(struct socket_state *st, u64 now)
{
	struct datagram_peer *all = st->has_called ? find_datagram_peer(peer_id(st, ADDRESS_SOLE)) : NULL;

	return all && all->role == PEER_CALLED && now - all->seen < DATAGRAM_PATIENCE_NS ? all : NULL;
}

/* Who has sent what was just received; NULL: not known. */
static __always_inline struct datagram_peer *sender(struct sock *sk, struct socket_state *st, u64 source,
						    u64 now)
{
	struct datagram_peer *peer;
	u64 id;

	if (source == ADDRESS_UNKNOWN) {
		peer = called_with_all(st, now);
		if (peer || !st->has_called)
			return peer;
		/* It was read before its arrival was told: an answer, where one is awaited. */
		peer = find_datagram_peer(peer_id(st, st->called));
		return peer && peer->role == PEER_CALLED && peer->open ? peer : NULL;
	}
	id = peer_id(st, source);
	peer = find_datagram_peer(id);
	if (peer)
		return peer;
	peer = st->role == TACHO_ROLE_DATAGRAM ? called_with_all(st, now) : NULL;
	if (peer)
		return peer;
	return add_datagram_peer(id, has_called_before(sk, st, source) ? PEER_CALLED : PEER_SERVED, now);
}

static __always_inline void request_received(struct datagram_ring *ring, struct datagram_slot *slot,
					     struct datagram_peer *peer, u32 count, u64 arrival, u64 now)
{
	u64 wait = elapsed(arrival, now) >> READ_SHIFT;

	if (peer) {
		if (!fetch_add_u32(&peer->open, count))
			peer->first = ring->newest;
		peer->seen = now;
	} else {
		__sync_fetch_and_add(&ring->anonymous, count);
	}
	__sync_fetch_and_add(&ring->open, count);
	ring->last_read = now;
	ring->touched = now;
	if (slot)
		slot->read = wait >= READ_FORGOTTEN - 1 ? READ_FORGOTTEN - 1 : wait + 1;
	else
		__sync_fetch_and_add(&ring->buried[0], count);
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
	u32 slotless = 0, count = 1;

	st->arrival = 0;
	if (st->role == TACHO_ROLE_DATAGRAM_CLIENT) {
		calls = calls_of(st);
		call_answered(&st->target, shard, &calls, 1, arrival);
		return;
	}
	if (st->role != TACHO_ROLE_DATAGRAM_SERVER)
		source = ring ? ADDRESS_UNKNOWN : source_of_read(sk, st);
	if (ring) {
		slot = take_slot(sk, st, ring, source, bytes, now);
		if (!slot) {
			arrival = oldest_arrival(ring, now);
		} else if (is_written(st, ring, slot)) {
			arrival = slot->arrival;
			source = slot->source;
			count = slot->open;
		} else {
			/* Its arrival is still being told, on another CPU. */
			slot = NULL;
			slotless = count = count_by_size(ring, bytes);
		}
	}
	socket_number(st);
	peer = sender(sk, st, source, now);
	if (peer && peer->role == PEER_CALLED && !peer->open && dispel_doubt(st)) {
		/* Rather somebody's who has been taken for the one that was called. */
		peer = NULL;
		source = ADDRESS_UNKNOWN;
		if (slot)
			slot->source = source;
	}
	if (peer && peer->role == PEER_CALLED) {
		if (slot)
			slot->open = 0;
		calls = calls_to(peer);
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
		slot = take_slot(sk, st, ring, source, bytes, now);
		if (slot && !is_written(st, ring, slot)) {
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
	request_received(ring, slot, peer, count, arrival, now);
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
		u64 oldest = slotless ? last_receive : oldest_arrival(ring, now);

		arrivals += oldest * missing;
		reads += oldest * missing;
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

/* What comes still later to somebody is no reply of which nobody knows to what. */
#define LATE_REPLIES_NS 60000000000ULL

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
		if (!open && ring->open && dispel_doubt(st)) {
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
	if (st->role == TACHO_ROLE_DATAGRAM_CLIENT) {
		calls = calls_of(st);
		call_begun(&calls, 1, now);
		return;
	}
	socket_number(st);
	if (is_udp(sk)) {
		to.segment_bytes = BPF_CORE_READ((struct udp_sock *)sk, gso_size);
		read_departure(&to, sk, st);
	}
	if (to.segment_bytes && bytes > to.segment_bytes)
		count = (bytes + to.segment_bytes - 1) / to.segment_bytes;
	if (st->role == TACHO_ROLE_DATAGRAM_SERVER)
		to.destination = ADDRESS_SOLE;
	id = peer_id(st, to.destination == ADDRESS_UNKNOWN ? ADDRESS_SOLE : to.destination);
	peer = find_datagram_peer(id);
	if (!peer || peer->role != PEER_CALLED) {
		bool doubted = st->doubts && !st->has_called;

		ring = find_ring(st);
		if (to.destination == ADDRESS_UNKNOWN && ring && ring->open) {
			reply_sent(st, shard, ring, NULL, ADDRESS_ANY, smaller(count, ring->open), now,
				   last_receive);
			return;
		}
		if (peer || (ring && ring->anonymous) || (doubted && ring && ring->open) ||
		    has_served_before(sk, st, to.destination) || st->role == TACHO_ROLE_DATAGRAM_SERVER) {
			if (!peer && to.destination != ADDRESS_UNKNOWN)
				peer = add_datagram_peer(id, PEER_SERVED, now);
			served_sent(st, shard, peer, to.destination, count, now, last_receive);
			return;
		}
		peer = add_datagram_peer(id, PEER_CALLED, now);
		if (!peer)
			return;
		if (to.destination != ADDRESS_UNKNOWN)
			peer->first = find_peer_slot(&st->target, sk, &to.address);
	}
	st->has_called = true;
	st->called = to.destination;
	calls = calls_to(peer);
	call_begun(&calls, count, now);
}
