/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* The state of every thread that polls, and the target that it is counted for. */
#pragma once

#include "lib/accumulate.bpf.h"
#include "lib/compat.bpf.h"
#include "lib/targets.bpf.h"
#include "lib/task_state.bpf.h"
#include "poll.h"

struct poll_state {
	u64 started; /* 0: not waiting */
	u64 ended; /* the wait is over since then, and in no histogram yet (poll_switch.bpf.h); 0: it lasts */
	u64 owner; /* cgroup id or thread group that `target` was found by */
	struct target_ref target;
	u32 generation; /* of the look-up maps when it was found */
	bool owned_by_process;
	bool nonblocking;
	bool adopted; /* the wait was found under way */
	bool counted; /* in poll_shard.threads of `target` */
};

/* All memory is there from the beginning: the scheduler's events must not ask for any. */
TASK_STATES(poll_states, poll_state, 0)

/* By target index; each an array of struct poll_shard, whose shape is set before loading. */
TARGET_BLOCKS(poll_blocks);

static __always_inline struct poll_shard *get_shard(const struct target_ref *target, u32 shard)
{
	return find_in_block(&poll_blocks, target, shard);
}
