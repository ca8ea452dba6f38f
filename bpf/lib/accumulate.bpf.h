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
const volatile __u32 shard_mask = 0;	   /* process shards - 1, a power of two less one */
const volatile __u32 exclusive_shards = 0; /* a truth value; bool is no type of the skeleton's C++ */

#define SHARED_SHARD 0

static __always_inline u32 process_shard(void)
{
	return 1 + (bpf_get_smp_processor_id() & shard_mask);
}

static __always_inline void add(u64 *counter, u64 value)
{
	if (exclusive_shards)
		*(volatile u64 *)counter += value;
	else
		__sync_fetch_and_add(counter, value);
}

static __always_inline void add_atomic(u64 *counter, u64 value)
{
	__sync_fetch_and_add(counter, value);
}

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

/* ns / 250 rounded down; exact below 2^36 ns, without a division (which costs 20 cycles). */
static __always_inline u64 quarter_microseconds(u64 ns)
{
	/* ceil(2^36 / 250): the error stays below one for 28-bit arguments. */
	const u64 reciprocal = 274877907;

	if (ns < 1ULL << 28)
		return ns * reciprocal >> 36;
	/* floor(floor(ns / 256) / 250) * 256 names the same bucket: up here all bounds are multiples of 64
	 * us. */
	return ((ns >> 8) * reciprocal >> 36) << 8;
}

/*
 * A global function: the verifier works through its branches once a program. Inlined, every duration that an
 * operation observes multiplies the ways through it by six. 64 bits wide: the verifier of 6.1 does not carry
 * a bound from the lower half over.
 */
__noinline u64 histogram_slot(u64 ns)
{
	u64 quarters;
	u32 octave, slot;

	if (ns <= 1000)
		return 0;
	if (ns > 1000ULL << TACHO_HISTOGRAM_OCTAVES)
		return TACHO_HISTOGRAM_SLOTS - 1;
	quarters = quarter_microseconds(ns - 1);
	octave = log2_u64(quarters) - 2;
	slot = 1 + octave * TACHO_HISTOGRAM_PER_OCTAVE + ((quarters >> octave) & 3);
	return slot < TACHO_HISTOGRAM_SLOTS ? slot : TACHO_HISTOGRAM_SLOTS - 1;
}

static __always_inline void observe(struct duration_histogram *h, u64 ns)
{
	u64 slot = histogram_slot(ns);

	if (slot < TACHO_HISTOGRAM_SLOTS)
		add(&h->slots[slot], 1);
	add(&h->sum_ns, ns);
}

static __always_inline void observe_atomic(struct duration_histogram *h, u64 ns)
{
	u64 slot = histogram_slot(ns);

	if (slot < TACHO_HISTOGRAM_SLOTS)
		add_atomic(&h->slots[slot], 1);
	add_atomic(&h->sum_ns, ns);
}
