/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* A probe's state of every thread: in the task's storage, or in a hash by its address (lib/compat.bpf.h). */
#pragma once

#include "lib/compat.bpf.h"
#include "lib/targets.bpf.h"

/*
 * The map, and state_of(), new_state(), drop_state() and surely_stateless() of a thread. `remembered`: a
 * structure; `flags`: of the hash. Storage goes with the task.
 */
#if !TASK_STORAGE
enum { STATE_GOES_WITH_TASK = 0 };

/* Where a task with a state may be, by its address: most threads of a machine have none, and need no hash to
 * say so. A place is never cleared, since others may share it.
 */
#define TASK_PLACES 16384

struct task_places {
	u8 used[TASK_PLACES];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct task_places);
} task_places SEC(".maps");

/* The lower half of an address. Numbers are made of it, which the verifier forbids of a pointer. */
static __always_inline u64 lower_half(struct task_struct *task)
{
	u64 half;

	asm volatile("r1 = %[task]; w1 = w1; %[half] = r1" : [half] "=r"(half) : [task] "r"(task) : "r1");
	return half;
}

static __always_inline u8 *place_of(struct task_struct *task)
{
	u32 zero = 0;
	struct task_places *places = bpf_map_lookup_elem(&task_places, &zero);

	/* The upper bits of a product depend on all bits of a factor. */
	return places ? &places->used[(u32)(lower_half(task) * 0x9E3779B1) >> 18] : NULL;
}

/* Whether no probe keeps a state of the thread. */
static __always_inline bool surely_stateless(struct task_struct *task)
{
	u8 *place = place_of(task);

	return place && !*place;
}

#define TASK_STATES(map, remembered, flags)                                                                  \
	struct {                                                                                             \
		__uint(type, BPF_MAP_TYPE_HASH);                                                             \
		__uint(map_flags, flags);                                                                    \
		__uint(max_entries, 32768);                                                                  \
		__type(key, u64);                                                                            \
		__type(value, struct remembered);                                                            \
	} map SEC(".maps");                                                                                  \
                                                                                                             \
	static __always_inline struct remembered *state_of(struct task_struct *task)                         \
	{                                                                                                    \
		u64 key = (u64)task;                                                                         \
                                                                                                             \
		return bpf_map_lookup_elem(&map, &key);                                                      \
	}                                                                                                    \
                                                                                                             \
	static __always_inline struct remembered *new_state(struct task_struct *task,                        \
							    struct remembered *first)                        \
	{                                                                                                    \
		u64 key = (u64)task;                                                                         \
		u8 *place = place_of(task);                                                                  \
                                                                                                             \
		if (place)                                                                                   \
			*place = 1;                                                                          \
		bpf_map_update_elem(&map, &key, first, BPF_NOEXIST);                                         \
		return bpf_map_lookup_elem(&map, &key);                                                      \
	}                                                                                                    \
                                                                                                             \
	static __always_inline void drop_state(struct task_struct *task)                                     \
	{                                                                                                    \
		u64 key = (u64)task;                                                                         \
                                                                                                             \
		bpf_map_delete_elem(&map, &key);                                                             \
	}
#else
enum { STATE_GOES_WITH_TASK = 1 };

#define TASK_STATES(map, remembered, flags)                                                                  \
	struct {                                                                                             \
		__uint(type, BPF_MAP_TYPE_TASK_STORAGE);                                                     \
		__uint(map_flags, BPF_F_NO_PREALLOC);                                                        \
		__type(key, int);                                                                            \
		__type(value, struct remembered);                                                            \
	} map SEC(".maps");                                                                                  \
                                                                                                             \
	static __always_inline struct remembered *state_of(struct task_struct *task)                         \
	{                                                                                                    \
		return bpf_task_storage_get(&map, task, NULL, 0);                                            \
	}                                                                                                    \
                                                                                                             \
	static __always_inline struct remembered *new_state(struct task_struct *task,                        \
							    struct remembered *first)                        \
	{                                                                                                    \
		struct remembered *st =                                                                      \
		    bpf_task_storage_get(&map, task, first, BPF_LOCAL_STORAGE_GET_F_CREATE);                 \
                                                                                                             \
		/* EAGAIN: another map's first storage of the thread was made at that time. */               \
		return st ? st : bpf_task_storage_get(&map, task, first, BPF_LOCAL_STORAGE_GET_F_CREATE);    \
	}                                                                                                    \
                                                                                                             \
	static __always_inline void drop_state(struct task_struct *task)                                     \
	{                                                                                                    \
		bpf_task_storage_delete(&map, task);                                                         \
	}

static __always_inline bool surely_stateless(struct task_struct *task)
{
	return !task->bpf_storage;
}
#endif

static __always_inline u64 cgroup_of_thread(struct task_struct *task)
{
#if TYPED_POINTERS
	return cgroup_v1 ? memory_cgroup_of(task) : task->cgroups->dfl_cgrp->kn->id;
#else
	return cgroup_of(task);
#endif
}

/*
 * When a thread that is being switched out was switched in, by the fair scheduler's account of its time
 * (set_next_entity). For switches that no event has told of: a kernel may conceal those away from threads of
 * its own choice, and then the thread that follows seems not to run.
 * @param since its last change that is known; a thread of another class seems to run since then
 */
static __always_inline u64 switched_in_at(struct task_struct *task, u64 since, u64 now)
{
	u64 ran = FIELD(task, se.sum_exec_runtime) - FIELD(task, se.prev_sum_exec_runtime);

	return now > since && now - since > ran ? now - ran : since;
}
