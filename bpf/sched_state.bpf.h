/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* What is remembered of every thread, and where it is counted. */
#pragma once

#include "lib/accumulate.bpf.h"
#include "lib/basic.bpf.h"
#include "lib/targets.bpf.h"
#include "lib/task_state.bpf.h"
#include "sched.h"

#define NO_STATE TACHO_THREAD_STATES

struct sched_state {
	u64 since;	 /* when `state` began */
	u64 cgroups;	 /* address of the set of cgroups it was in when `target` was found */
	u64 affinity_at; /* when its affinity was looked at */
	u64 adopted;	 /* who made this: a walk over the tasks at this time; 0: the scheduler's events */
	struct target_ref target;
	u32 generation; /* of the look-up maps when it was found */
	u8 state;	/* NO_STATE: not among the threads of `target` */
	u8 call;	/* slot of the system call in which it is off CPU */
	bool watched;	/* it belongs to `target`; else to none */
};

/* All memory is there from the beginning: these events must not ask for any. */
TASK_STATES(sched_states, sched_state, 0)

#ifdef TACHO_BASIC
static __always_inline bool surely_stateless(struct task_struct *task)
{
	return false;
}

static __always_inline u64 cgroup_of_thread(struct task_struct *task)
{
	return cgroup_of(task);
}
#else
static __always_inline bool surely_stateless(struct task_struct *task)
{
	return !task->bpf_storage;
}

/* cgroup_of() by pointers that the verifier knows. */
static __always_inline u64 cgroup_of_thread(struct task_struct *task)
{
	return cgroup_v1 ? memory_cgroup_of(task) : task->cgroups->dfl_cgrp->kn->id;
}
#endif

/* By target index; each an array of struct sched_shard, whose shape is set before loading. */
TARGET_BLOCKS(sched_blocks);

static __always_inline struct sched_shard *get_shard(const struct target_ref *target, u32 shard)
{
	return find_in_block(&sched_blocks, target, shard);
}
