/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Adding to a target's accumulators.
 *
 * A target's block is an array of shards. Shard 0 takes atomic additions from any context. The others are for
 * hooks in process context. Where there is one of them per CPU and the hook runs with preemption disabled
 * (tracepoints), nothing else can touch that shard meanwhile and plain additions do: 0.5 ns instead of 4 (26
 * contended).
 */
#pragma once

#include "lib/histogram.h"
#include "lib/kernel.bpf.h"

/* Set before loading. */
const volatile __u8 cpu_shards[1024] = {}; /* the process shard of each CPU, by its number modulo the size */
const volatile __u32 exclusive_shards = 0; /* a truth value; bool is no type of the skeleton's C++ */

#define SHARED_SHARD 0

/*
 * The constant, read once a program: of a volatile one every addition would read it anew. The branch that is
 * not taken is gone when the program runs.
 */
static __always_inline bool shards_are_exclusive(void)
{
	u32 exclusive;

	asm("%0 = %[constant] ll\n\t%0 = *(u32 *)(%0 + 0)"
	    : "=r"(exclusive)
	    : [constant] "i"(&exclusive_shards));
	return exclusive;
}

static __always_inline u32 process_shard(void)
{
	return cpu_shards[bpf_get_smp_processor_id() & (sizeof(cpu_shards) - 1)];
}

static __always_inline void add(u64 *counter, u64 value)
{
	if (shards_are_exclusive())
		*(volatile u64 *)counter += value;
	else
		__sync_fetch_and_add(counter, value);
}

static __always_inline void add_atomic(u64 *counter, u64 value)
{
	__sync_fetch_and_add(counter, value);
}

/*
 * A change begins or ends, for readers that tell by two counters whether they were caught in the middle
 * (exporter/probes/bracket.h): they must see the first one before what changes, and that before the second
 * one. x86 keeps stores in order. On arm64 only atomics that return the old value are barriers, which BPF has
 * there since Linux 5.18.
 */
#if defined(__TARGET_ARCH_x86)
static __always_inline void mark_change(u64 *counter)
{
	add(counter, 1);
}

static __always_inline void mark_shared_change(u64 *counter)
{
	add_atomic(counter, 1);
}
#else
static __always_inline void mark_shared_change(u64 *counter)
{
	u64 old = __sync_fetch_and_add(counter, 1);

	/* Without a use of it the compiler takes the instruction that returns nothing. */
	asm volatile("" : "+r"(old));
}

static __always_inline void mark_change(u64 *counter)
{
	mark_shared_change(counter);
}
#endif

static __always_inline u32 log2_u64(u64 v)
{
	u32 r = 0;

	if (v >> 32) {
		v >>= 32;
		r += 32;
	}
	if (v >> 16) {
		v >>= 16;
		r += 16;
	}
	if (v >> 8) {
		v >>= 8;
		r += 8;
	}
	if (v >> 4) {
		v >>= 4;
		r += 4;
	}
	if (v >> 2) {
		v >>= 2;
		r += 2;
	}
	return r + (v >> 1);
}

static const u64 octave_bounds[] = TACHO_HISTOGRAM_OCTAVE_BOUNDS;
static const u8 bounds_below[32] = TACHO_HISTOGRAM_BOUNDS_BELOW;
#define OCTAVE_BOUNDS (sizeof(octave_bounds) / sizeof(octave_bounds[0]))

/*
 * The slot of a fine histogram. A global function: the verifier works through its branches once a program.
 * Inlined, every duration that an operation observes multiplies the ways through it by six. 64 bits wide: the
 * verifier of 6.1 does not carry a bound from the lower half over.
 */
__noinline u64 fine_slot(u64 ns)
{
	u64 scaled, below, slot;
	u32 octave;

	if (ns <= TACHO_HISTOGRAM_FIRST_BOUND_NS)
		return 0;
	if (ns > TACHO_HISTOGRAM_LAST_BOUND_NS)
		return TACHO_HISTOGRAM_FINE_SLOTS - 1;
	octave = log2_u64(ns);
	scaled = ns << (TACHO_HISTOGRAM_BOUNDS_OCTAVE - octave);
	below = bounds_below[(scaled >> (TACHO_HISTOGRAM_BOUNDS_OCTAVE - 5)) & 31];
	barrier_var(below); /* the compiler knows the table, the verifier does not */
	if (below >= OCTAVE_BOUNDS)
		return 0;
	below += scaled > octave_bounds[below];
	slot = octave * TACHO_HISTOGRAM_FINE_PER_OCTAVE + below - TACHO_HISTOGRAM_SLOTS_BELOW_ZERO;
	return slot < TACHO_HISTOGRAM_FINE_SLOTS ? slot : TACHO_HISTOGRAM_FINE_SLOTS - 1;
}

static __always_inline u64 histogram_slot(u64 ns)
{
	return (fine_slot(ns) + 3) >> 2;
}

#define DEFINE_OBSERVE(name, histogram, slot_of, slot_count, add_to)                                         \
	static __always_inline void name(struct histogram *h, u64 ns, u64 times)                             \
	{                                                                                                    \
		u64 slot = slot_of(ns);                                                                      \
                                                                                                             \
		if (slot < (slot_count))                                                                     \
			add_to(&h->slots[slot], times);                                                      \
		add_to(&h->sum_ns, ns *times);                                                               \
	}

DEFINE_OBSERVE(observe_coarse, duration_histogram, histogram_slot, TACHO_HISTOGRAM_SLOTS, add)
DEFINE_OBSERVE(observe_fine, fine_histogram, fine_slot, TACHO_HISTOGRAM_FINE_SLOTS, add)
DEFINE_OBSERVE(observe_coarse_atomic, duration_histogram, histogram_slot, TACHO_HISTOGRAM_SLOTS, add_atomic)
DEFINE_OBSERVE(observe_fine_atomic, fine_histogram, fine_slot, TACHO_HISTOGRAM_FINE_SLOTS, add_atomic)

/* Durations that are equal, in a histogram of either kind. */
#define observe_times(histogram, ns, times)                                                                  \
	_Generic((histogram),                                                                                \
	    struct fine_histogram *: observe_fine,                                                           \
	    struct duration_histogram *: observe_coarse)(histogram, ns, times)
#define observe_times_atomic(histogram, ns, times)                                                           \
	_Generic((histogram),                                                                                \
	    struct fine_histogram *: observe_fine_atomic,                                                    \
	    struct duration_histogram *: observe_coarse_atomic)(histogram, ns, times)

/* One more duration. */
#define observe(histogram, ns) observe_times(histogram, ns, 1)
#define observe_atomic(histogram, ns) observe_times_atomic(histogram, ns, 1)
