/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * The look-up of an event's target. targets.bpf.c owns the maps; the other objects get the same ones at load
 * time.
 */
#pragma once

#include "lib/kernel.bpf.h"
#include "lib/targets.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct target_rules);
} target_rules SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct target_settings);
} target_settings SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 16384);
	__type(key, __u64);
	__type(value, struct target_ref);
} cgroup_targets SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 16384);
	__type(key, __u32);
	__type(value, struct target_ref);
} process_targets SEC(".maps");

/* A probe's numbers: by target index, each an array whose shape is set before loading. */
#define TARGET_BLOCKS(map)                                                                                   \
	struct {                                                                                             \
		__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);                                                    \
		__uint(max_entries, 1);                                                                      \
		__uint(key_size, sizeof(__u32));                                                             \
		__uint(value_size, sizeof(__u32));                                                           \
	} map SEC(".maps")

static __always_inline void *find_in_block(void *blocks, const struct target_ref *target, u32 slot)
{
	u32 index = target->index;
	void *block = bpf_map_lookup_elem(blocks, &index);

	return block ? bpf_map_lookup_elem(block, &slot) : NULL;
}

static __always_inline struct target_rules *get_rules(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&target_rules, &zero);
}

static __always_inline bool cgroup_may_be_watched(const struct target_rules *rules, u64 cgroup)
{
	u32 bit = cgroup % TACHO_FILTER_BITS;

	return rules->filters[rules->filter & 1].cgroups[bit / 64] & (1ULL << (bit % 64));
}

static __always_inline bool process_may_be_watched(const struct target_rules *rules, u32 tgid)
{
	u32 bit = tgid % TACHO_FILTER_BITS;

	return rules->filters[rules->filter & 1].processes[bit / 64] & (1ULL << (bit % 64));
}

/* The target of a process, by its cgroup (v2 id), else by its thread group; NULL if it is not watched. */
static __always_inline struct target_ref *find_target(const struct target_rules *rules, u64 cgroup, u32 tgid)
{
	struct target_ref *ref = NULL;

	if (cgroup_may_be_watched(rules, cgroup))
		ref = bpf_map_lookup_elem(&cgroup_targets, &cgroup);
	if (!ref && rules->process_rules && process_may_be_watched(rules, tgid))
		ref = bpf_map_lookup_elem(&process_targets, &tgid);
	return ref;
}

/* What is remembered can outlive its target, whose index may then belong to another one. */
static __always_inline bool is_stale(const struct target_ref *target)
{
	u32 index = target->index;
	struct target_settings *settings = bpf_map_lookup_elem(&target_settings, &index);

	return !settings || settings->epoch != target->epoch;
}

/* The target has been without members since look-up maps of this generation: what was remembered then may
 * have gone on unseen.
 */
static __always_inline bool was_empty_since(const struct target_ref *target, u32 generation)
{
	u32 index = target->index;
	struct target_settings *settings = bpf_map_lookup_elem(&target_settings, &index);

	return settings && (s32)(generation - settings->since) < 0;
}

/*
 * What the programs do without for the target: enum tacho_shed. As long as no target does without anything,
 * one comparison tells, beside those with the generation.
 */
static __always_inline u32 shed_level(const struct target_rules *rules, const struct target_ref *target)
{
	u32 index = target->index;
	struct target_settings *settings;

	if (!rules->shed)
		return TACHO_SHED_NOTHING;
	settings = bpf_map_lookup_elem(&target_settings, &index);
	return settings ? settings->shed : TACHO_SHED_NOTHING;
}

static __always_inline bool is_shed(const struct target_rules *rules, const struct target_ref *target,
				    u32 level)
{
	return shed_level(rules, target) >= level;
}

/* Neither by cgroup nor by process: decides most events of a machine in two nanoseconds. */
static __always_inline bool surely_unwatched(const struct target_rules *rules, u64 cgroup, u32 tgid)
{
	return !cgroup_may_be_watched(rules, cgroup) &&
	       (!rules->process_rules || !process_may_be_watched(rules, tgid));
}

/* Set before loading: there is no v2 hierarchy in use, cgroups are those of the v1 memory controller. */
const volatile __u32 cgroup_v1 = 0; /* a truth value */

#define MEMORY_CONTROLLER bpf_core_enum_value(enum cgroup_subsys_id, memory_cgrp_id)

static __always_inline struct cgroup *memory_group_of(struct task_struct *task)
{
	void *subsystems =
	    (void *)BPF_CORE_READ(task, cgroups) + bpf_core_field_offset(struct css_set, subsys);
	struct cgroup_subsys_state *state = NULL;

	bpf_probe_read_kernel(&state, sizeof(state), subsystems + MEMORY_CONTROLLER * sizeof(state));
	return BPF_CORE_READ(state, cgroup);
}

/* What a task's id below is the id of. */
static __always_inline struct cgroup *group_of(struct task_struct *task)
{
	return cgroup_v1 ? memory_group_of(task) : BPF_CORE_READ(task, cgroups, dfl_cgrp);
}

static __always_inline u64 memory_cgroup_of(struct task_struct *task)
{
	return BPF_CORE_READ(memory_group_of(task), kn, id);
}

/* The id of a task's cgroup: the inode number of its directory. */
static __always_inline u64 cgroup_of(struct task_struct *task)
{
	if (cgroup_v1)
		return memory_cgroup_of(task);
	return BPF_CORE_READ(task, cgroups, dfl_cgrp, kn, id);
}

static __always_inline u64 current_cgroup(void)
{
	if (cgroup_v1)
		return memory_cgroup_of((struct task_struct *)bpf_get_current_task());
	return bpf_get_current_cgroup_id();
}

static __always_inline u32 current_tgid(void)
{
	return bpf_get_current_pid_tgid() >> 32;
}

/* The same of the current task, whose number is asked for only where it matters. */
static __always_inline bool is_surely_unwatched_here(const struct target_rules *rules, u64 cgroup)
{
	return !cgroup_may_be_watched(rules, cgroup) &&
	       (!rules->process_rules || !process_may_be_watched(rules, current_tgid()));
}
