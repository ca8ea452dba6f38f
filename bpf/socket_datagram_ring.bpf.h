/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * The datagrams of a socket that serves: from their arrival to their reply.
 *
 * A ring of slots in the order of arrival, which is that of receipt. A slot is written when a datagram
 * arrives, gets its time of reading when it is received, and is closed by the reply. What is overwritten
 * before that is `buried`: its reply still counts, with the oldest time that is known. What is not answered
 * in DATAGRAM_PATIENCE_NS is forgotten (socket_sweep.bpf.h): a one-way message; if a reply comes after all,
 * that is a request still.
 *
 * Rings are in a map of their own, not in the socket's storage: of what a socket may use for options, 20 KiB
 * before Linux 6.8, nothing is taken, and what was open when a socket was closed is forgotten like the rest.
 */
#pragma once

#include "socket_datagram_peers.bpf.h"

#define DATAGRAM_SLOTS 256
/* So many of the datagrams that wait already when a ring is made have a slot. */
#define DATAGRAM_BACKLOG 32
/* Times of reading are in units of 16 ns after the arrival; the top bit says that it is forgotten. */
#define READ_SHIFT 4
#define READ_FORGOTTEN (1U << 31)

struct datagram_slot {
	u64 arrival;
	u64 source; /* hash of the address */
	u32 read;   /* 0: not yet */
	u32 open;   /* datagrams in it that are not answered */
	u32 lap;    /* whose it is: the number of the arrival, and 1; written last */
	u32 skb;    /* lower half of where the kernel has it; 0: not known */
};

/* Counters modulo 2^32; their differences are what is waiting. */
struct datagram_ring {
	struct target_ref target;
	u64 touched;
	u64 last_read;
	u64 turned;    /* when `buried` was turned over */
	u64 told_last; /* where the kernel has what a hook told of last, and its sender; 0: that has been
			  received */
	u32 arrived;
	u32 taken;	   /* of the arrivals */
	u32 newest;	   /* of the slots, the one that was taken last */
	u32 slotless;	   /* read last, without a slot: their arrival was being told */
	u32 segment_bytes; /* of the datagrams that came together last */
	u32 open;	   /* datagrams that are read, and neither answered nor forgotten */
	u32 anonymous;	   /* of these, those whose sender is not known */
	u32 buried[2];	   /* of these, those that have no slot; the second ones are older */
	u64 buried_came;   /* the last one of them: its arrival, */
	u64 buried_read;   /* and its reading */
	u32 gone;	   /* forgotten ones whose sender is not known */
	u64 gone_at;	   /* when they were forgotten */
	u64 reader;	   /* thread that has read last */
	u32 swaps;	   /* times that another thread has read, of those that may have to be made good */
	u64 sender_at;	   /* where the sender's address stands in user space; 0: not known */
	bool is_named;	   /* the sender of what was read last is certain */
	/* Who was taken for the sender of a request because something was sent there; 0: nobody is in
	 * question */
	u64 guessed;
	u64 guessed_at;
	struct datagram_address guessed_address;
	struct datagram_slot slots[DATAGRAM_SLOTS];
};

/* By the number of the socket. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 8192);
	__type(key, u64);
	__type(value, struct datagram_ring);
} datagram_rings SEC(".maps");

/* What a new ring begins as: too large for the stack. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct datagram_ring);
} no_datagrams SEC(".maps");

static __always_inline u64 socket_number(struct socket_state *st)
{
	if (!st->number)
		set_once(&st->number, mix(bpf_ktime_get_ns(), bpf_get_prandom_u32()) | 1);
	return st->number;
}

static __always_inline struct datagram_ring *find_ring(struct socket_state *st)
{
	u64 key = st->number;

	return st->has_ring ? bpf_map_lookup_elem(&datagram_rings, &key) : NULL;
}

/* At the least: a read moves all of one queue to the other, and the same ones stand in both for a moment. */
static __always_inline u32 surely_waiting(struct sock *sk)
{
	u32 come = FIELD(sk, sk_receive_queue.qlen);
	u32 moved = is_udp(sk) ? BPF_CORE_READ((struct udp_sock *)sk, reader_queue.qlen) : 0;

	return come > moved ? come : moved;
}

/*
 * A datagram may be received before the hook of its arrival has run, on another CPU. Its sender is not known
 * then, and what that hook tells later stands for one datagram too many: a later one may be taken for its
 * sender's. Each doubt allows for one such mistake to be made good.
 */
#define MOST_DOUBTS 16

static __always_inline void doubt(struct socket_state *st)
{
	if (st->doubts < MOST_DOUBTS)
		st->doubts++;
}

static __always_inline bool dispel_doubt(struct socket_state *st)
{
	if (!st->doubts)
		return false;
	st->doubts--;
	return true;
}

/* With or without READ_FORGOTTEN. */
static __always_inline u64 read_at(const struct datagram_slot *slot)
{
	return slot->arrival + ((u64)(slot->read & ~READ_FORGOTTEN) << READ_SHIFT);
}

/* They have no slot any more, or never had one. */
static __always_inline void bury(struct datagram_ring *ring, u32 count, u64 came, u64 read)
{
	__sync_fetch_and_add(&ring->buried[0], count);
	ring->buried_came = came;
	ring->buried_read = read;
}

/* The next slot; what is overwritten before its reply is buried. @return its number */
static __always_inline u32 fill_slot(struct datagram_ring *ring, u64 arrival, u64 source, u32 count, u32 skb)
{
	u32 number = fetch_add_u32(&ring->arrived, 1);
	struct datagram_slot *slot = &ring->slots[number % DATAGRAM_SLOTS];
	u32 open = slot->open;

	if (open && slot->read && !(slot->read & READ_FORGOTTEN))
		bury(ring, open, slot->arrival, read_at(slot));
	slot->open = 0;
	slot->arrival = arrival;
	slot->source = source;
	slot->read = 0;
	slot->skb = skb;
	slot->open = count;
	*(volatile u32 *)&slot->lap = number + 1;
	return number;
}

/*
 * `waiting` datagrams came before the ring of the socket with that number was made. A global function: the
 * verifier works through its loop once a program.
 */
__noinline int fill_backlog(u64 number, u64 arrival, u64 source, u32 waiting)
{
	struct datagram_ring *ring = bpf_map_lookup_elem(&datagram_rings, &number);

	for (u32 i = 0; ring && i < DATAGRAM_BACKLOG && i < waiting; i++)
		fill_slot(ring, arrival, source, 1, 0);
	return 0;
}

/* @param waiting datagrams that came before, all from `source` */
static __noinline struct datagram_ring *make_ring(struct socket_state *st, u64 source, u32 waiting, u64 now)
{
	u64 key = socket_number(st);
	struct datagram_ring *ring;
	u32 zero = 0;
	void *none = bpf_map_lookup_elem(&no_datagrams, &zero);

	if (none)
		bpf_map_update_elem(&datagram_rings, &key, none, BPF_NOEXIST);
	ring = bpf_map_lookup_elem(&datagram_rings, &key);
	if (!ring) {
		count_loss(TACHO_LOST_MAP_FULL);
		return NULL;
	}
	st->has_ring = true;
	/* Two datagrams may arrive at once: the loser takes what the winner has made. */
	if (ring->touched)
		return ring;
	ring->target = st->target;
	ring->touched = now;
	if (waiting) {
		doubt(st); /* a read under way may not see the ring, and find its datagram by itself */
		fill_backlog(key, st->arrival ? st->arrival : now, source, waiting);
	}
	return ring;
}

static __always_inline u32 smaller(u32 a, u32 b)
{
	return a < b ? a : b;
}

/* Takes `count` from a counter that others change, too; what is not in it stays. @return what was taken */
static __always_inline u32 take_from(u32 *counter, u32 count)
{
	u32 taken = smaller(*(volatile u32 *)counter, count), had;

	if (!taken || taken >= 1U << 31)
		return 0;
	had = fetch_add_u32(counter, -taken);
	if (had >= taken && had < 1U << 31)
		return taken;
	/* Another one has taken of it meanwhile, and has left too little. */
	had = had < 1U << 31 ? had : 0;
	__sync_fetch_and_add(counter, taken - had);
	return had;
}

/*
 * Has the hook of another arrival told of this one? That hook was late, or ran when both were queued: since
 * Linux 6.18 datagrams of several CPUs are queued together, and only then the hook runs as many times
 * (udp_prod_queue). What no hook tells of is found when it is read (slots_before). Where the kernel has it
 * tells nothing if another's came there: the hook of one that had been received was late.
 */
static __always_inline bool is_told(struct datagram_ring *ring, const struct arrival *arrival, u64 skb)
{
	u64 told = skb ^ arrival->source;

	return exchange(&ring->told_last, told) == told;
}

static __always_inline void ring_arrived(struct datagram_ring *ring, const struct arrival *arrival, u64 skb,
					 u64 now)
{
	if (is_told(ring, arrival, skb))
		return;
	fill_slot(ring, now, arrival->source, arrival->count, skb);
	if (arrival->segment_bytes)
		ring->segment_bytes = arrival->segment_bytes;
}

/* As many as came together, if they were as long as those that did so before. */
static __always_inline u32 count_by_size(const struct datagram_ring *ring, u32 bytes)
{
	u32 segment = ring->segment_bytes;

	return segment && bytes > segment ? (bytes + segment - 1) / segment : 1;
}

/* Times that another CPU is looked after, which writes a slot. */
#define LOOKS_FOR_SLOT 64

static __always_inline bool is_in_place(const struct datagram_ring *ring, u32 number)
{
	return *(const volatile u32 *)&ring->slots[number % DATAGRAM_SLOTS].lap == number + 1;
}

/* A global function: the verifier works through its loop once a program. @param socket its number */
__noinline u32 gets_in_place(u64 socket, u32 number)
{
	const struct datagram_ring *ring = bpf_map_lookup_elem(&datagram_rings, &socket);
	u32 looks = 0;

	if (!ring)
		return false;
	while (looks < LOOKS_FOR_SLOT && !is_in_place(ring, number))
		looks++;
	return looks < LOOKS_FOR_SLOT;
}

/* The hook of an arrival has taken the slot, and is about to write it. @return whether it has */
static __always_inline bool is_written(const struct socket_state *st, const struct datagram_ring *ring,
				       u32 number)
{
	return is_in_place(ring, number) || gets_in_place(st->number, number);
}

/* The oldest arrival that is still known. */
static __always_inline u64 oldest_arrival(const struct datagram_ring *ring, u64 now)
{
	u64 arrival = ring->slots[ring->arrived % DATAGRAM_SLOTS].arrival;

	return arrival ? arrival : now;
}

static __always_inline u32 unbury(struct datagram_ring *ring, u32 count)
{
	u32 old = take_from(&ring->buried[1], count);

	return old + take_from(&ring->buried[0], count - old);
}

/* They have got no reply: messages, not requests. If one comes after all, another request is opened. */
static __always_inline void forget(struct datagram_ring *ring, u32 count)
{
	struct socket_shard *shared = get_shared_shard(&ring->target);

	count = take_from(&ring->open, count);
	ring->gone_at = bpf_ktime_get_ns();
	if (!shared || !count)
		return;
	add_atomic(&shared->oneway, count);
	add_atomic(&shared->dismissed, count);
}
