/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * The record of every thread of a target. The sched probe keeps it; the socket probe computes the parts of a
 * request's time from it.
 *
 * A thread's waits are summed up by kind as they end. The difference of two copies of the sums is the waits
 * in between; the thread ran on a CPU for the rest of the time. So the parts of a request add up to its time,
 * whatever event was missed.
 */
#pragma once

#include "anatomy.h"
#include "lib/compat.bpf.h"
#include "lib/kernel.bpf.h"
#include "lib/targets.h"
#include "sched.h"

/* Copies are in units of 1024 ns: 32 bits are 73 minutes. */
#define WAIT_SHIFT 10

/* A thread's sums at a moment at which it ran. */
struct wait_mark {
	u64 at;
	u32 waited; /* of a wait that ended then: how long, in the same units; or WAITED_FOR_WORK */
	u32 stops;  /* how often the thread had stopped running */
	u32 waits[TACHO_WAITS];
};

/*
 * A wait right behind a reply is one for more work, however long ago that was read. Later ones may be within
 * the work: a thread that is free takes what waits for it without a pause.
 */
#define WAITED_FOR_WORK (~0U)
#define BEHIND_REPLY_NS 100000

/* Ends of idle waits that are kept: the first after a reply, and the latest two. */
#define IDLE_MARKS 3

/* When the target read a request last, at most so much earlier than it did: not each read writes it. */
struct latest_read {
	u64 at;
	u64 pad[7];
};
#define LATEST_READ_NS 16384

/* By target; of the sched probe, which lends it to the socket probe. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct latest_read);
} latest_reads SEC(".maps");

enum {
	MARK_REPLY,
	MARK_BEFORE, /* the latest wait that ended before anything was read that could have ended it */
	MARK_IDLE,
	WAIT_MARKS = MARK_IDLE + IDLE_MARKS
};

struct thread_waits {
	u64 key; /* tells threads apart, also if one has another's number; 0: what it does is others' work */
	u64 sums[TACHO_WAITS]; /* ns */
	u64 delays;	       /* the kernel's own sum of waits for a CPU, when the thread was switched out */
	u64 settled; /* ns that are in `sums` of the wait for a CPU that by the events has not ended */
	u32 stops;
	u32 idle_ends;	  /* since it replied last, that were worth keeping */
	u64 idle_lost;	  /* when the latest one of these was that is not kept any more */
	u64 idle_checked; /* the latest of all ends, or the reply */
	u64 serving;	  /* when it has read a request that it has not answered yet; 0: none */
	u64 calls_ns;	  /* in calls that it has made since */
	u64 longest_call_ns;
	u32 longest_call_peer;
	u32 calls;
	u64 shed;  /* waits were not summed up: its key until then, a new one is to be given; 0: none is */
	u64 begun; /* when the sums began anew; 0: with the thread */
	struct wait_mark marks[WAIT_MARKS];
	/* Used within one run of a socket program: the verifier does not follow what stands in memory. */
	u64 left;
	u64 start;
	u64 from;
	u64 slow;
	u64 spent[TACHO_PARTS]; /* of the request that is answered, ns */
	struct wait_mark base;
};

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
	u8 wait;	/* what it is off CPU for: a part, counted from TACHO_FIRST_WAIT */
	struct thread_waits waits;
};

/*
 * The kernel's own sum of a thread's waits for a CPU (sched_info_arrive()), 0 where it has none. It is up to
 * date while the thread runs, whatever events tell of it.
 */
static __always_inline u64 delays_of(struct task_struct *task)
{
	if (!bpf_core_field_exists(task->sched_info.run_delay))
		return 0;
	return FIELD(task, sched_info.run_delay);
}

/*
 * Since a thread that waits for a CPU by the events was switched out it has got one: what it had waited until
 * then, by the kernel's account, enters its sums. Once: what is read next has nothing of it.
 */
static __always_inline void settle_delay(struct sched_state *st, u32 wait, u64 delays)
{
	u64 ns = delays - st->waits.delays - st->waits.settled;

	st->waits.settled += ns;
	st->waits.sums[wait] += ns;
}

static __always_inline void take_mark(struct wait_mark *mark, const struct thread_waits *waits)
{
	mark->stops = waits->stops;
	for (u32 i = 0; i < TACHO_WAITS; i++)
		mark->waits[i] = waits->sums[i] >> WAIT_SHIFT;
}
