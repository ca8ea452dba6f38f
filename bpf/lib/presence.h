/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * The thread time that a state has taken, including that of threads which are still in it, without a look at
 * these threads.
 *
 * A thread that enters at time t adds {1, t}, a thread that leaves adds {-1, -t}, on any shard. Then at time
 * `now` the total is threads * now - times_ns, summed over all shards modulo 2^64. A change that a reader
 * misses or reads too early puts the total off only by its distance from `now`, as long as both fields are
 * read together.
 */
#pragma once

#include <linux/types.h>

struct presence {
	__u64 threads;
	__u64 times_ns;
};
