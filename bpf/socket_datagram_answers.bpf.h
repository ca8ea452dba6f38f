/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Which requests of a ring a reply answers (socket_datagram_ring.bpf.h). */
#pragma once

#include "socket_datagram_ring.bpf.h"

/* Requests that a reply has ended: sums, and how they are looked for. */
struct answered {
	u64 arrivals;
	u64 reads;
	u64 source; /* of the last one */
	u32 count;
	u32 late; /* of these, those that were forgotten already */
	u32 next; /* slot to look for the next one from */
	u32 from; /* slot to look at first */
	u32 taken;
	u32 wanted;    /* requests that are still to be closed */
	u64 of_source; /* only */
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct answered);
} answered_requests SEC(".maps");

struct closing {
	struct datagram_ring *ring;
	struct answered *answered;
};

/* Of the ring of the socket with that number. */
static __always_inline bool find_closing(struct closing *closing, u64 number)
{
	u32 zero = 0;

	closing->ring = bpf_map_lookup_elem(&datagram_rings, &number);
	closing->answered = bpf_map_lookup_elem(&answered_requests, &zero);
	return closing->ring && closing->answered;
}

static long close_slot(u32 index, struct closing *closing)
{
	struct answered *answered = closing->answered;
	u32 number = answered->from + index, wanted = answered->wanted;
	struct datagram_slot *slot = &closing->ring->slots[number % DATAGRAM_SLOTS];
	u32 take = slot->open, read = slot->read;

	if (number == answered->taken || !wanted)
		return 1;
	answered->next = number;
	if (!take || !read || (answered->of_source != ADDRESS_ANY && slot->source != answered->of_source))
		return 0;
	if (take > wanted)
		take = wanted;
	/* Another thread may have been faster. */
	if (fetch_add_u32(&slot->open, -take) < take) {
		__sync_fetch_and_add(&slot->open, take);
		return 0;
	}
	answered->arrivals += slot->arrival * take;
	answered->reads += read_at(slot) * take;
	answered->source = slot->source;
	if (read & READ_FORGOTTEN)
		answered->late += take;
	answered->wanted = wanted - take;
	return wanted == take;
}

DEFINE_LOOP(close_slots, close_slot, struct closing, find_closing)

/*
 * Closes up to `wanted` open requests from `source`, the slot `from` first. A global function: the verifier
 * works through its loop once a program, and not on every path that comes here.
 */
__noinline int close_requests(u64 number, u64 source, u32 from, u32 wanted)
{
	struct closing closing = {};
	struct answered *answered;

	if (!find_closing(&closing, number))
		return 0;
	answered = closing.answered;
	__builtin_memset(answered, 0, sizeof(*answered));
	answered->taken = closing.ring->taken;
	answered->from = answered->taken - from > DATAGRAM_SLOTS ? answered->taken - DATAGRAM_SLOTS : from;
	answered->wanted = wanted;
	answered->of_source = source;
	close_slots(number, DATAGRAM_SLOTS);
	answered->count = wanted - answered->wanted;
	return 0;
}
