/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * The time that tacho's own programs take, by target.
 *
 * One event in OWN_TIME_EVENTS is timed and stands for all of them. Bits of a time that the event has at
 * hand, that of the event before it, decide which one: no counter is needed, and all other events pay for one
 * comparison. The time of a run begins where its target is known. What comes before that, the hook and the
 * question whose event it is, events of unwatched tasks pay as well.
 */
#pragma once

#include "accumulate.bpf.h"

#define OWN_TIME_EVENTS 256
/* Of nanoseconds: the bits below are not random where a clock ticks more slowly (arm64: every 42 ns). */
#define OWN_TIME_SHIFT 6
/* A longer run was interrupted. It must not stand for others that were not. */
#define LONGEST_OWN_NS 20000

/* @param seed time of any event before this one */
static __always_inline bool is_timed_event(u64 seed)
{
	/* The verifier is to follow one way through the program, not one for each answer. */
	barrier_var(seed);
	return !((seed >> OWN_TIME_SHIFT) & (OWN_TIME_EVENTS - 1));
}

/* @return when the part that is timed began; without meaning for an event that is not timed */
static __always_inline u64 begin_own_time(u64 seed)
{
	return is_timed_event(seed) ? bpf_ktime_get_ns() : 0;
}

/* Without the reading of the clock that is within what is timed: other events have none. */
static __always_inline u64 own_time_since(u64 begun)
{
	u64 end = bpf_ktime_get_ns();
	u64 reading = bpf_ktime_get_ns() - end;
	u64 ns = end - begun;

	if (ns > LONGEST_OWN_NS)
		ns = LONGEST_OWN_NS;
	return ns > reading ? (ns - reading) * OWN_TIME_EVENTS : 0;
}

/* With the seed that began it. */
static __always_inline void end_own_time(u64 *own_ns, u64 seed, u64 begun)
{
	if (is_timed_event(seed))
		add(own_ns, own_time_since(begun));
}

/* From contexts in which nothing is exclusive. */
static __always_inline void end_shared_own_time(u64 *own_ns, u64 seed, u64 begun)
{
	if (is_timed_event(seed))
		add_atomic(own_ns, own_time_since(begun));
}
