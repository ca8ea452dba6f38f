/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* What is remembered of every thread, and where it is counted. */
#pragma once

#include "lib/accumulate.bpf.h"
#include "lib/basic.bpf.h"
#include "lib/targets.bpf.h"
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

#ifdef TACHO_BASIC
/* By address of the task. All memory is there from the beginning: these events must not ask for any. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 32768);
	__type(key, u64);
	__type(value, struct sched_state);
} sched_states SEC(".maps");

static __always_inline struct sched_state *state_of(struct task_struct *task)
{
	u64 key = (u64)task;

	return bpf_map_lookup_elem(&sched_states, &key);
}

static __always_inline struct sched_state *new_state(struct task_struct *task, struct sched_state *first)
{
	u64 key = (u64)task;

	bpf_map_update_elem(&sched_states, &key, first, BPF_NOEXIST);
	return bpf_map_lookup_elem(&sched_states, &key);
}

static __always_inline void drop_state(struct task_struct *task)
{
	u64 key = (u64)task;

	bpf_map_delete_elem(&sched_states, &key);
}

static __always_inline bool surely_stateless(struct task_struct *task)
{
	return false;
}

static __always_inline u64 cgroup_of_thread(struct task_struct *task)
{
	return cgroup_of(task);
}
#else
struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct sched_state);
} sched_states SEC(".maps");

static __always_inline struct sched_state *state_of(struct task_struct *task)
{
	return bpf_task_storage_get(&sched_states, task, NULL, 0);
}

static __always_inline struct sched_state *new_state(struct task_struct *task, struct sched_state *first)
{
	return bpf_task_storage_get(&sched_states, task, first, BPF_LOCAL_STORAGE_GET_F_CREATE);
}

/* It goes with the task: giving memory back is no work for the scheduler. */
static __always_inline void drop_state(struct task_struct *task)
{
}

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
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(__u32));
} sched_blocks SEC(".maps");

static __always_inline struct sched_shard *get_shard(const struct target_ref *target, u32 shard)
{
	u32 index = target->index;
	void *block = bpf_map_lookup_elem(&sched_blocks, &index);

	return block ? bpf_map_lookup_elem(block, &shard) : NULL;
}
