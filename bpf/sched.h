/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Shared by the sched probe's programs and user space. */
#pragma once

#include "lib/histogram.h"
#include "lib/presence.h"

#include <linux/types.h>

/* The state of a thread: exactly one from its first wake-up to its last switch. */
enum thread_state {
	TACHO_THREAD_RUNNING,
	TACHO_THREAD_RUNNABLE, /* waits for a CPU: woken, or preempted */
	TACHO_THREAD_SLEEPING, /* TASK_INTERRUPTIBLE */
	TACHO_THREAD_BLOCKED,  /* any other sleep */
	TACHO_THREAD_IOWAIT,   /* such a sleep that the kernel flags as waiting for I/O */
	TACHO_THREAD_STATES,
};

/* Numbers of system calls are below this. */
#define TACHO_SYSCALLS 512
/* The system calls by which off-CPU time is split; `none` (page faults) and `other` are the first two. */
#define TACHO_OFFCPU_CALLS 36
#define TACHO_OFFCPU_NONE 0
#define TACHO_OFFCPU_OTHER 1

/* Affinity covers the first 256 CPUs. */
#define TACHO_AFFINITY_WORDS 4
/* Affinity is gathered for 2^33 ns (8.6 s) at a time. */
#define TACHO_AFFINITY_SHIFT 33

/* One CPU is 2^20 units of quota. */
#define TACHO_QUOTA_SHIFT 20
#define TACHO_NO_QUOTA (~0ULL)

/* CPUs that threads seen in one period may run on, and how much of them. */
struct sched_affinity {
	__u64 period;
	__u64 cpus[TACHO_AFFINITY_WORDS];
	__u64 quota; /* the largest of a thread's; TACHO_NO_QUOTA: as much as there is; 0: none was seen */
};

/*
 * One shard of a target's block (lib/accumulate.bpf.h). `begin` and `end` bracket a change of `states` and
 * `calls`, as in struct socket_moments. Every thread off CPU (sleeping, blocked, iowait) is in `calls`, too.
 */
struct sched_shard {
	__u64 begin;
	struct presence states[TACHO_THREAD_STATES];
	__u64 end;
	struct presence calls[TACHO_OFFCPU_CALLS];
	struct duration_histogram runqueue_delay;
	struct sched_affinity affinity[2]; /* by period modulo 2 */
	__u64 own_ns;			   /* estimated time of the programs, see lib/own_time.bpf.h */
};
