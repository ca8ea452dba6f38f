/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * The cgroups around tacho itself, for where it sees none of them as files: in a container without the host's
 * hierarchy. An iterator over cgroups would need a descriptor of one, or an id inside the reader's cgroup
 * namespace; the list that the kernel keeps of every cgroup's children is there for whoever may trace.
 */
#pragma once

#include "lib/targets.bpf.h"

/* So many records fit into the iterator's buffer of eight pages. */
#define SELF_MAX_DEPTH 24
#define SELF_MAX_STEPS 128

/* include/linux/cgroup-defs.h; without it a cgroup has been removed. */
#define CSS_ONLINE (1 << 1)

static __always_inline void write_own_cgroup(struct bpf_iter__task *ctx, struct cgroup_subsys_state *css)
{
	struct own_cgroup record = {};

	record.id = BPF_CORE_READ(css, cgroup, kn, id);
	record.parent = BPF_CORE_READ(css, parent, cgroup, kn, id);
	bpf_probe_read_kernel_str(record.name, sizeof(record.name), BPF_CORE_READ(css, cgroup, kn, name));
	bpf_seq_write(ctx->meta->seq, &record, sizeof(record));
}

/* The child whose place in the list of its parent's children is `at`; NULL where the list ends. */
static __always_inline struct cgroup_subsys_state *child_at(struct list_head *at,
							    struct cgroup_subsys_state *parent)
{
	if (!at || (void *)at == (void *)parent + bpf_core_field_offset(struct cgroup_subsys_state, children))
		return NULL;
	return (void *)at - bpf_core_field_offset(struct cgroup_subsys_state, sibling);
}

/* What is below, each before its own children: a step a cgroup, and one more for each that has children. */
static __always_inline void write_cgroups_below(struct bpf_iter__task *ctx, struct cgroup_subsys_state *top)
{
	struct cgroup_subsys_state *at = top, *next;
	bool down = true;

	for (int i = 0; i < SELF_MAX_STEPS; i++) {
		next = NULL;
		if (down && (at == top || BPF_CORE_READ(at, flags) & CSS_ONLINE)) {
			if (at != top)
				write_own_cgroup(ctx, at);
			next = child_at(BPF_CORE_READ(at, children.next), at);
		}
		down = true;
		if (!next) {
			struct cgroup_subsys_state *parent = BPF_CORE_READ(at, parent);

			if (at == top || !parent)
				return;
			next = child_at(BPF_CORE_READ(at, sibling.next), parent);
			if (!next) {
				next = parent;
				down = false;
			}
		}
		at = next;
	}
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
		write_own_cgroup(ctx, css);
		if (BPF_CORE_READ(css, cgroup, kn, id) == rules->self_top)
			top = css;
		css = BPF_CORE_READ(css, parent);
	}
	if (top)
		write_cgroups_below(ctx, top);
	return 0;
}
