/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * The peers of datagram sockets: who spoke first decides which side serves.
 *
 * One table for all sockets, of buckets of four that share two cache lines: a look-up costs less than half of
 * a hash map's and an insertion a tenth. Where a bucket is full, whoever has been silent longest is
 * forgotten, and rather one of whom nothing is open, or whom a server has not answered that never answers.
 * Who waits for a reply, and is forgotten all the same, is counted as lost.
 */
#pragma once

#include "lib/loss.h"
#include "socket_datagram_address.bpf.h"
#include "socket_roles.bpf.h"

#define DATAGRAM_PEER_BUCKETS 4096
#define DATAGRAM_PEER_WAYS 4
/* Calls and replies that are late by more do not belong together. */
#define DATAGRAM_PATIENCE_NS 5000000000ULL

struct datagram_peer {
	u64 id;	   /* of socket and address; 0: free */
	u64 seen;  /* served: when it asked last; called: when it was called last */
	u32 open;  /* requests that are not answered; calls that are not answered */
	u32 first; /* served: slot of the oldest open request; called: dependency slot */
	u16 run;   /* called: calls since the last answer */
	u8 role;
	/* See socket_datagram_turns.bpf.h. */
	u8 slips;	     /* the socket's, when that was seen last */
	__s8 balance;	     /* what went there, less what came, since all was answered */
	u8 has_answered : 1; /* called: something has come from there for sure */
	u8 by_others : 1;    /* called: what answers for it has other addresses */
	u8 asks_and_serves : 1;
	u8 is_lost : 1; /* what `balance` says is out of step */
	u8 unheard : 1; /* served: by a socket that had answered nobody when they asked last */
	u16 spoke;	/* when anything went there, or came from there, last */
};

/* Units of `spoke`: 16.8 ms. */
#define SPOKE_SHIFT 24
#define MOST_BALANCE 100

struct datagram_peers {
	struct datagram_peer ways[DATAGRAM_PEER_WAYS];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, DATAGRAM_PEER_BUCKETS);
	__type(key, u32);
	__type(value, struct datagram_peers);
} datagram_peers SEC(".maps");

static __always_inline u64 peer_id(const struct socket_state *st, u64 address)
{
	return mix(st->number, address) | 1;
}

static __always_inline struct datagram_peers *bucket_of(u64 id)
{
	u32 bucket = (id >> 32) % DATAGRAM_PEER_BUCKETS;

	return bpf_map_lookup_elem(&datagram_peers, &bucket);
}

/*
 * Where it is in its bucket; DATAGRAM_PEER_WAYS: nowhere. This one and the next are global functions: the
 * verifier goes on from them with one number, not from each place that it may be.
 */
__noinline u32 way_of_peer(u64 id)
{
	const struct datagram_peers *bucket = bucket_of(id);
	u32 way = 0;

	if (!bucket)
		return DATAGRAM_PEER_WAYS;
	while (way < DATAGRAM_PEER_WAYS && bucket->ways[way].id != id)
		way++;
	return way;
}

static __always_inline struct datagram_peer *find_datagram_peer(u64 id)
{
	u32 way = way_of_peer(id);
	struct datagram_peers *bucket = way < DATAGRAM_PEER_WAYS ? bucket_of(id) : NULL;

	if (!bucket)
		return NULL;
	/* Bounded once more where it is used, and behind the check of the bucket. */
	barrier_var(way);
	return &bucket->ways[way & (DATAGRAM_PEER_WAYS - 1)];
}

/* Those that were called are few and decide more: they stay a minute longer. */
#define CALLED_PEERS_STAY_NS 60000000000ULL
/* Of whom something is open: above all others, for as long as a reply may take. */
#define OPEN_PEERS_STAY_NS (1ULL << 62)

/* Of whom something is open that a server may never answer: above those that were called. */
#define UNHEARD_PEERS_STAY_NS (2 * CALLED_PEERS_STAY_NS)

static __always_inline bool may_stay_unheard(const struct datagram_peer *peer)
{
	return peer->role == PEER_SERVED && peer->unheard;
}

static __always_inline bool has_open(const struct datagram_peer *peer, u64 now)
{
	return peer->open && peer->seen + DATAGRAM_PATIENCE_NS > now;
}

/* The peer of the bucket that can be forgotten first. */
__noinline u32 way_of_oldest(u64 id, u64 now)
{
	const struct datagram_peers *bucket = bucket_of(id);
	u64 oldest = ~0ULL;
	u32 place = 0;

	if (!bucket)
		return 0;
	for (u32 i = 0; i < DATAGRAM_PEER_WAYS; i++) {
		u64 seen = bucket->ways[i].seen;

		if (has_open(&bucket->ways[i], now))
			seen +=
			    may_stay_unheard(&bucket->ways[i]) ? UNHEARD_PEERS_STAY_NS : OPEN_PEERS_STAY_NS;
		else if (bucket->ways[i].role == PEER_CALLED)
			seen += CALLED_PEERS_STAY_NS;
		if (seen < oldest) {
			oldest = seen;
			place = i;
		}
	}
	return place;
}

static __always_inline struct datagram_peer *add_datagram_peer(u64 id, u8 role, u8 slips, u64 now)
{
	struct datagram_peers *bucket = bucket_of(id);
	struct datagram_peer *peer;

	if (!bucket)
		return NULL;
	peer = &bucket->ways[way_of_oldest(id, now) & (DATAGRAM_PEER_WAYS - 1)];
	if (has_open(peer, now) && !may_stay_unheard(peer))
		count_loss(TACHO_LOST_MAP_FULL);
	peer->id = id;
	peer->seen = now;
	peer->open = 0;
	peer->first = 0;
	peer->run = 0;
	peer->role = role;
	peer->has_answered = peer->by_others = peer->asks_and_serves = peer->is_lost = peer->unheard = 0;
	peer->balance = role == PEER_CALLED ? 1 : -1;
	peer->slips = slips;
	peer->spoke = now >> SPOKE_SHIFT;
	return peer;
}
