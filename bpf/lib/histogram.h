/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * The bucket scheme of all duration histograms, for both sides: exponential, as Prometheus' native histograms
 * are.
 *
 * Slot 0 counts durations up to 2^-20 s (0.95 us), then come four slots an octave, bounded by 2^(k/4) s for
 * k = -79 .. 24, and one slot for what is longer than 2^6 s (64 s). A slot's upper bound is inclusive, as
 * Prometheus' `le` is. So every slot is one bucket of a native histogram with schema 2, slot 0 its zero
 * bucket.
 *
 * A fine histogram has sixteen slots an octave (schema 4): a quantile that is taken from it is at most
 * 2^(1/16) - 1 = 4.5 % off, however narrow the distribution is. Four of its slots are one of the others.
 */
#pragma once

#define TACHO_HISTOGRAM_OCTAVES 26
/* The first bound is 2^-20 s. */
#define TACHO_HISTOGRAM_FIRST_OCTAVE 20
#define TACHO_HISTOGRAM_PER_OCTAVE 4
/* One slot up to the first bound, the octaves, one slot above the last bound. */
#define TACHO_HISTOGRAM_SLOTS (1 + TACHO_HISTOGRAM_OCTAVES * TACHO_HISTOGRAM_PER_OCTAVE + 1)

#include <linux/types.h>

#define TACHO_HISTOGRAM_FINE_PER_OCTAVE 16
#define TACHO_HISTOGRAM_FINE_SLOTS (1 + TACHO_HISTOGRAM_OCTAVES * TACHO_HISTOGRAM_FINE_PER_OCTAVE + 1)

/*
 * The bounds 10^9 * 2^(k/16) ns repeat in every octave of nanoseconds. These are the sixteen between 2^36 and
 * 2^37 ns, rounded down: a whole number is above a bound if it is above the bound rounded down. A seventeenth
 * that nothing is above ends them.
 */
#define TACHO_HISTOGRAM_OCTAVE_BOUNDS                                                                        \
	{0x103ff4f52a, 0x10f82246b0, 0x11b87712c0, 0x12814fc504, 0x13530ce0a9,	    0x142e132ebb,            \
	 0x1512cbee97, 0x1601a5087c, 0x16fb11425a, 0x17ff8876fc, 0x190f87cfa0,	    0x1a2b920017,            \
	 0x1b542f859a, 0x1c89eee859, 0x1dcd650000, 0x1f1f2d3b36, 0xffffffffffffffff}
/* How many of them are below the beginning of each 32nd of that octave; no 32nd holds more than one. */
#define TACHO_HISTOGRAM_BOUNDS_BELOW                                                                         \
	{0,  1,	 2,  2,	 3,  3,	 4,  5,	 5,  6,	 6,  7,	 7,  8,	 9,  9,                                      \
	 10, 10, 10, 11, 11, 12, 12, 13, 13, 13, 14, 14, 15, 15, 15, 16}
/* The octave of nanoseconds that those lie in, and the slot of what is longest below 2^9 ns, counted down
 * from 0. */
#define TACHO_HISTOGRAM_BOUNDS_OCTAVE 36
#define TACHO_HISTOGRAM_SLOTS_BELOW_ZERO (9 * TACHO_HISTOGRAM_FINE_PER_OCTAVE + 14)
/* 10^9 * 2^-20 and 10^9 * 2^6 ns. */
#define TACHO_HISTOGRAM_FIRST_BOUND_NS 953
#define TACHO_HISTOGRAM_LAST_BOUND_NS 64000000000

struct duration_histogram {
	__u64 sum_ns;
	__u64 slots[TACHO_HISTOGRAM_SLOTS];
};

struct fine_histogram {
	__u64 sum_ns;
	__u64 slots[TACHO_HISTOGRAM_FINE_SLOTS];
};
