/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* The state that is kept of every thread, and the target that it is counted for. */
#pragma once

#include "lib/accumulate.bpf.h"
#include "lib/compat.bpf.h"
#include "lib/targets.bpf.h"
#include "lib/task_state.bpf.h"
#include "sched.h"
#include "thread_record.bpf.h"

#define NO_STATE TACHO_THREAD_STATES

/* All memory is there from the beginning: these events must not ask for any. */
TASK_STATES(sched_states, sched_state, 0)

/*
 * What a thread's memory begins as: too much for the stack. The first element is for threads that an event
 * tells of, the second for the walk over all of them, of which there is one at a time.
 */
enum { FIRST_BY_EVENT, FIRST_BY_WALK, FIRST_STATES };

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, FIRST_STATES);
	__type(key, u32);
	__type(value, struct sched_state);
} first_states SEC(".maps");

static __always_inline struct sched_state *first_state(u32 way)
{
	return bpf_map_lookup_elem(&first_states, &way);
}

/* By target index; each an array of struct sched_shard, whose shape is set before loading. */
TARGET_BLOCKS(sched_blocks);

static __always_inline struct sched_shard *get_shard(const struct target_ref *target, u32 shard)
{
	return find_in_block(&sched_blocks, target, shard);
}
