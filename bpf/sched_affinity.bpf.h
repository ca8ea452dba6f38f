/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* The CPUs that a thread may run on, and how much of them. */
#pragma once

#include "lib/compat.bpf.h"
#include "sched.h"

/* Set before loading: CPUs that are on. */
const volatile __u32 cpus_online = 1;

/* Members of the scheduler's groups, which a kernel may be built without. */
struct cfs_bandwidth___quota {
	u64 period; /* ktime_t */
	u64 quota;
} __attribute__((preserve_access_index));

struct task_group___quota {
	struct cfs_bandwidth___quota cfs_bandwidth;
	struct task_group___quota *parent;
} __attribute__((preserve_access_index));

struct task_struct___group {
	struct task_group___quota *sched_task_group;
} __attribute__((preserve_access_index));

/* Deep enough for a container in a pod in a node that is a container itself. */
#define QUOTA_LEVELS 12

/* What the quotas of the thread's group and those above it leave: the files of the controller tell the same,
 * but not to a sidecar, which sees none. */
static __noinline u64 quota_of(struct task_struct *task)
{
	struct task_struct___group *member = (void *)task;
	struct task_group___quota *group;
	u64 least = TACHO_NO_QUOTA;

	if (!bpf_core_field_exists(struct task_struct___group, sched_task_group) ||
	    !bpf_core_field_exists(struct task_group___quota, cfs_bandwidth))
		return TACHO_NO_QUOTA;
	group = BPF_CORE_READ(member, sched_task_group);
	for (int i = 0; i < QUOTA_LEVELS && group; i++) {
		u64 quota = BPF_CORE_READ(group, cfs_bandwidth.quota);
		u64 period = BPF_CORE_READ(group, cfs_bandwidth.period);

		if (quota != TACHO_NO_QUOTA && period && (quota << TACHO_QUOTA_SHIFT) / period < least)
			least = (quota << TACHO_QUOTA_SHIFT) / period;
		group = BPF_CORE_READ(group, parent);
	}
	return least;
}

/* Which CPUs the thread may run on, and how much. */
static __noinline void note_affinity(struct sched_affinity *affinity, struct task_struct *task, u64 now)
{
	u64 cpus[TACHO_AFFINITY_WORDS] = {};
	u64 period = now >> TACHO_AFFINITY_SHIFT;
	u32 size = bpf_core_field_size(task->cpus_mask);
	u64 quota = quota_of(task);

	if ((u32)FIELD(task, nr_cpus_allowed) >= cpus_online)
		__builtin_memset(cpus, 0xff, sizeof(cpus));
	else
		bpf_probe_read_kernel(cpus, size < sizeof(cpus) ? size : sizeof(cpus), &task->cpus_mask);
	if (affinity->period != period) {
		__builtin_memset(affinity->cpus, 0, sizeof(affinity->cpus));
		affinity->quota = 0;
	}
	if (quota > affinity->quota)
		affinity->quota = quota;
	affinity->period = period;
	for (u32 i = 0; i < TACHO_AFFINITY_WORDS; i++)
		affinity->cpus[i] |= cpus[i];
}
