/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * The log-linear bucket scheme of all duration histograms, for both sides.
 *
 * Slot 0 counts durations up to 1 us, then four slots per octave, bounded by 2^k * {1.25, 1.5, 1.75, 2} us
 * for k = 0 .. 25, and one slot for what is longer than 2^26 us (67.1 s). A slot's upper bound is inclusive,
 * as Prometheus' `le` is. All bounds are multiples of 250 ns.
 *
 * A fine histogram has sixteen slots per octave: a quantile that is taken from it is at most 6 % off, however
 * narrow the distribution is. Four of its slots are one of the others, and its bounds are multiples of 62.5
 * ns.
 */
#pragma once

#define TACHO_HISTOGRAM_OCTAVES 26
#define TACHO_HISTOGRAM_PER_OCTAVE 4
/* One slot up to 1 us, the octaves, one slot above the last bound. */
#define TACHO_HISTOGRAM_SLOTS (1 + TACHO_HISTOGRAM_OCTAVES * TACHO_HISTOGRAM_PER_OCTAVE + 1)

#include <linux/types.h>

#define TACHO_HISTOGRAM_FINE_PER_OCTAVE 16
#define TACHO_HISTOGRAM_FINE_SLOTS (1 + TACHO_HISTOGRAM_OCTAVES * TACHO_HISTOGRAM_FINE_PER_OCTAVE + 1)

struct duration_histogram {
	__u64 sum_ns;
	__u64 slots[TACHO_HISTOGRAM_SLOTS];
};

struct fine_histogram {
	__u64 sum_ns;
	__u64 slots[TACHO_HISTOGRAM_FINE_SLOTS];
};
