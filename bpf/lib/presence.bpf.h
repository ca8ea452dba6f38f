/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Counts the threads that are in a state (lib/presence.h). */
#pragma once

#include "lib/accumulate.bpf.h"
#include "lib/presence.h"

/* Adds in a way that the shard allows; `shard` is SHARED_SHARD or process_shard(). */
static __always_inline void add_on(u32 shard, u64 *counter, u64 value)
{
	if (shard == SHARED_SHARD)
		add_atomic(counter, value);
	else
		add(counter, value);
}

static __always_inline void come(u32 shard, struct presence *place, u64 now)
{
	add_on(shard, &place->threads, 1);
	add_on(shard, &place->times_ns, now);
}

static __always_inline void leave(u32 shard, struct presence *place, u64 now)
{
	add_on(shard, &place->threads, -1);
	add_on(shard, &place->times_ns, -now);
}
