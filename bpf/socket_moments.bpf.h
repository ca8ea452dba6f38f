/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Operations of a target, and the intervals between them. */
#pragma once

#include "socket_state.bpf.h"

/*
 * One more operation of the target at `now`. The interval to the one before it, whoever did that, is signed:
 * two CPUs may come here in another order than they read their clocks, and only with the sign the sum
 * telescopes.
 */
static __always_inline void account(struct socket_moments *m, struct socket_chain *chain, u64 now, u32 bytes,
				    u64 idle_limit)
{
	u64 previous = exchange(&chain->last, now);
	s64 interval = now - previous;
	u64 square;

	mark_change(&m->begin);
	add(&m->operations, 1);
	add(&m->bytes, bytes);
	if (previous) {
		if (interval > (s64)idle_limit) {
			add(&m->idle_gaps, 1);
			add(&m->idle_gap_ns, interval);
		} else {
			add(&m->intervals, 1);
			add((u64 *)&m->interval_ns, interval);
			/* At most (4 s)^2 = 2^64: the limit keeps it in 64 bits. */
			square = interval * interval;
			if (shards_are_exclusive()) {
				u64 low = m->square_low + square;

				m->square_high += low < square;
				m->square_low = low;
			} else {
				u64 low = fetch_add(&m->square_low, square) + square;

				if (low < square)
					__sync_fetch_and_add(&m->square_high, 1);
			}
		}
	}
	mark_change(&m->end);
}

static __always_inline void count_operation(struct socket_moments *m, u32 bytes)
{
	mark_change(&m->begin);
	add(&m->operations, 1);
	add(&m->bytes, bytes);
	mark_change(&m->end);
}

/* The same where intervals are shed. Datagrams ask for the time of the latest operation all the same. */
static __always_inline void account_without_interval(struct socket_moments *m, struct socket_chain *chain,
						     u64 now, u32 bytes)
{
	*(volatile u64 *)&chain->last = now;
	count_operation(m, bytes);
}
