/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * How much thread time something has taken, of those who are in it still included, without asking them.
 *
 * Who comes at time t adds {1, t}, who leaves adds {-1, -t}, on any shard. Then at time `now` the total is
 * threads * now - times_ns, summed over all shards modulo 2^64. A change that is missed or seen too early by
 * a reader puts the total off by its distance from `now` only, as long as both fields are read in step.
 */
#pragma once

#include <linux/types.h>

struct presence {
	__u64 threads;
	__u64 times_ns;
};
