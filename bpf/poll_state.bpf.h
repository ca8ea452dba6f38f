/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* What is remembered of every thread that polls, and where it is counted. */
#pragma once

#include "lib/accumulate.bpf.h"
#include "lib/basic.bpf.h"
#include "lib/targets.bpf.h"
#include "poll.h"

struct poll_state {
	u64 started; /* 0: not waiting */
	u64 owner;   /* cgroup id or thread group that `target` was found by */
	struct target_ref target;
	u32 generation; /* of the look-up maps when it was found */
	bool owned_by_process;
	bool nonblocking;
	bool adopted; /* the wait was found under way */
	bool counted; /* in poll_shard.threads of `target` */
};

#ifdef TACHO_BASIC
/* By thread. Storage of tasks: Linux 5.11. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 32768);
	__type(key, u32);
	__type(value, struct poll_state);
} poll_states SEC(".maps");

static __always_inline struct poll_state *state_of(struct task_struct *task)
{
	u32 key = FIELD(task, pid);

	return bpf_map_lookup_elem(&poll_states, &key);
}

static __always_inline struct poll_state *new_state(struct task_struct *task)
{
	struct poll_state none = {};
	u32 key = FIELD(task, pid);

	bpf_map_update_elem(&poll_states, &key, &none, BPF_NOEXIST);
	return bpf_map_lookup_elem(&poll_states, &key);
}

static __always_inline void drop_state(struct task_struct *task)
{
	u32 key = FIELD(task, pid);

	bpf_map_delete_elem(&poll_states, &key);
}
#else
struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct poll_state);
} poll_states SEC(".maps");

static __always_inline struct poll_state *state_of(struct task_struct *task)
{
	return bpf_task_storage_get(&poll_states, task, NULL, 0);
}

static __always_inline struct poll_state *new_state(struct task_struct *task)
{
	return bpf_task_storage_get(&poll_states, task, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
}

static __always_inline void drop_state(struct task_struct *task)
{
	bpf_task_storage_delete(&poll_states, task);
}
#endif

/* By target index; each an array of struct poll_shard, whose shape is set before loading. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(__u32));
} poll_blocks SEC(".maps");

static __always_inline struct poll_shard *get_shard(const struct target_ref *target, u32 shard)
{
	u32 index = target->index;
	void *block = bpf_map_lookup_elem(&poll_blocks, &index);

	return block ? bpf_map_lookup_elem(block, &shard) : NULL;
}
