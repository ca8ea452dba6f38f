/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * The cgroups around tacho itself, for a tacho that sees none of them as files: in a container without the
 * host's hierarchy. An iterator over cgroups would need a descriptor of one, or an id inside the reader's
 * cgroup namespace. The kernel's list of every cgroup's children is available to every process that may
 * trace.
 */
#pragma once

#include "lib/compat.bpf.h"
#include "lib/targets.bpf.h"

/* So many records fit into the iterator's buffer of eight pages. */
#define SELF_MAX_DEPTH 24
#define SELF_MAX_STEPS 128

/* include/linux/cgroup-defs.h; without it a cgroup has been removed. */
#define CSS_ONLINE (1 << 1)

/* The record that is being written: one reader goes through the iterator at a time. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct own_cgroup);
} own_cgroup_record SEC(".maps");

/* A global function, which the verifier works through once, not once a cgroup. */
__noinline u64 fill_own_cgroup_record(u64 address)
{
	struct cgroup_subsys_state *css = (void *)address;
	struct own_cgroup *record;
	u32 zero = 0;

	record = bpf_map_lookup_elem(&own_cgroup_record, &zero);
	if (!record)
		return 0;
	record->id = BPF_CORE_READ(css, cgroup, kn, id);
	record->parent = BPF_CORE_READ(css, parent, cgroup, kn, id);
	bpf_probe_read_kernel_str(record->name, sizeof(record->name), BPF_CORE_READ(css, cgroup, kn, name));
	return record->id;
}

/* @return its id */
static __always_inline u64 write_own_cgroup(struct bpf_iter__task *ctx, struct cgroup_subsys_state *css)
{
	u64 id = fill_own_cgroup_record((u64)css);
	struct own_cgroup *record;
	u32 zero = 0;

	record = bpf_map_lookup_elem(&own_cgroup_record, &zero);
	if (record)
		bpf_seq_write(ctx->meta->seq, record, sizeof(*record));
	return id;
}

/* The child whose place in the list of its parent's children is `at`; NULL where the list ends. */
static __always_inline struct cgroup_subsys_state *child_at(struct list_head *at,
							    struct cgroup_subsys_state *parent)
{
	if (!at || (void *)at == (void *)parent + bpf_core_field_offset(struct cgroup_subsys_state, children))
		return NULL;
	return (void *)at - bpf_core_field_offset(struct cgroup_subsys_state, sibling);
}

/* A place on the way through a tree, beside the address of a cgroup: all that is below it has been passed. */
#define CAME_UP 1

static __always_inline bool is_online(struct cgroup_subsys_state *css)
{
	return BPF_CORE_READ(css, flags) & CSS_ONLINE;
}

/*
 * The next place on the way through all that is below `top`, each cgroup before its children; 0 at the end.
 */
__noinline u64 next_place(u64 place, u64 top)
{
	struct cgroup_subsys_state *at = (void *)(place & ~(u64)CAME_UP), *next = NULL, *parent;

	if (!(place & CAME_UP) && (place == top || is_online(at)))
		next = child_at(BPF_CORE_READ(at, children.next), at);
	if (next)
		return (u64)next;
	parent = BPF_CORE_READ(at, parent);
	if ((u64)at == top || !parent)
		return 0;
	next = child_at(BPF_CORE_READ(at, sibling.next), parent);
	return next ? (u64)next : (u64)parent | CAME_UP;
}

struct cgroup_walk {
	struct bpf_iter__task *ctx;
	u64 top;
	u64 place;
};

/* Goes to the next place, and writes the cgroup if there is one. 1 at the end. */
static long write_next_cgroup(u32 step, struct cgroup_walk *walk)
{
	walk->place = next_place(walk->place, walk->top);
	if (!walk->place)
		return 1;
	if (!(walk->place & CAME_UP) && is_online((void *)walk->place))
		write_own_cgroup(walk->ctx, (void *)walk->place);
	return 0;
}

/* A step a cgroup, and one more for each that has children. */
static __always_inline void write_cgroups_below(struct bpf_iter__task *ctx, struct cgroup_subsys_state *top)
{
	struct cgroup_walk walk = {.ctx = ctx, .top = (u64)top, .place = (u64)top};

	if (LOOP_IN_KERNEL(SELF_MAX_STEPS, write_next_cgroup, &walk))
		return;
	for (u32 i = 0; i < SELF_MAX_STEPS; i++)
		if (write_next_cgroup(i, &walk))
			return;
}

/*
 * The cgroups from the reader's own up to the root, and all those below the one of them that `self_top`
 * names. The reader is among the tasks of its PID namespace, over which the iterator goes. Lists and cgroups
 * are freed after an RCU grace period, and programs run under RCU.
 */
SEC("iter/task")
int list_own_cgroups(struct bpf_iter__task *ctx)
{
	struct target_rules *rules = get_rules();
	struct task_struct *task = ctx->task;
	struct cgroup_subsys_state *css, *top = NULL;

	if (!task || !rules || (u32)FIELD(task, pid) != (u32)bpf_get_current_pid_tgid())
		return 0;
	css = (void *)BPF_CORE_READ(task, cgroups, dfl_cgrp) + bpf_core_field_offset(struct cgroup, self);
	for (int i = 0; i < SELF_MAX_DEPTH && css; i++) {
		if (write_own_cgroup(ctx, css) == rules->self_top)
			top = css;
		css = BPF_CORE_READ(css, parent);
	}
	if (top)
		write_cgroups_below(ctx, top);
	return 0;
}
