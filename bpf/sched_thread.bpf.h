/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* The target of a thread, and the state in which it is counted there. */
#pragma once

#include "lib/loss.bpf.h"
#include "lib/presence.bpf.h"
#include "sched_state.bpf.h"
#include "sched_waits.bpf.h"

/* Takes the thread out of its target's sums; within their bracket. */
static __always_inline void end_state(struct sched_state *st, struct sched_shard *sums, u32 shard, u64 now)
{
	u32 state = st->state;
	u32 call = st->call;

	st->state = NO_STATE;
	end_wait(st, state, now);
	if (state < TACHO_THREAD_STATES)
		leave(shard, &sums->states[state], now);
	if (is_off_cpu(state) && call < TACHO_OFFCPU_CALLS)
		leave(shard, &sums->calls[call], now);
}

/* Puts a thread that is nowhere into them. */
static __always_inline void begin_state(const struct sched_state *st, struct sched_shard *sums, u32 shard)
{
	u32 state = st->state;
	u32 call = st->call;

	if (state < TACHO_THREAD_STATES)
		come(shard, &sums->states[state], st->since);
	if (is_off_cpu(state) && call < TACHO_OFFCPU_CALLS)
		come(shard, &sums->calls[call], st->since);
}

static __always_inline void forget_thread(struct sched_state *st)
{
	u32 shard = process_shard();
	struct sched_shard *sums;

	if (st->state == NO_STATE)
		return;
	sums = is_stale(&st->target) ? NULL : get_shard(&st->target, shard);
	if (!sums) {
		st->state = NO_STATE;
		return;
	}
	mark_change(&sums->begin);
	end_state(st, sums, shard, bpf_ktime_get_ns());
	mark_change(&sums->end);
}

struct thread_owner {
	struct target_ref target;
	u64 cgroups;
	u32 generation;
	bool watched;
};

/* The target of the thread. */
static __always_inline void find_owner(struct thread_owner *owner, struct task_struct *task,
				       const struct target_rules *rules, u64 cgroup)
{
	struct target_ref *found;

	/* Both before the look-up: what changes meanwhile is seen the next time. */
	owner->generation = rules->generation;
	owner->cgroups = (u64)FIELD(task, cgroups);
	found = find_target(rules, cgroup, FIELD(task, tgid));
	owner->watched = found;
	if (found)
		owner->target = *found;
}

static __always_inline void set_owner(struct sched_state *st, const struct thread_owner *owner)
{
	st->generation = owner->generation;
	st->cgroups = owner->cgroups;
	st->watched = owner->watched;
	if (owner->watched)
		st->target = owner->target;
}

static __always_inline struct sched_state *new_thread(struct task_struct *task)
{
	struct sched_state *first = first_state(FIRST_BY_EVENT), *st = NULL;

	if (first) {
		first->state = NO_STATE;
		st = new_state(task, first);
	}
	if (!st)
		count_loss(TACHO_LOST_TASK_STATE);
	else if (!st->waits.key)
		begin_record(st, task);
	return st;
}

/* Charges the thread to the target that it belongs to now; NULL if that is none. Once per thread and change.
 */
static __noinline struct sched_state *bind_thread(struct task_struct *task, u64 cgroup)
{
	struct sched_state *st = state_of(task);
	struct target_rules *rules = get_rules();
	struct thread_owner found = {};

	if (!rules)
		return NULL;
	find_owner(&found, task, rules, cgroup);
	if (!st && !found.watched)
		return NULL;
	if (!st)
		st = new_thread(task);
	if (!st)
		return NULL;
	if (!found.watched || st->target.index != found.target.index ||
	    st->target.epoch != found.target.epoch)
		forget_thread(st);
	set_owner(st, &found);
	if (found.watched)
		return st;
	/* Nothing tells of its end, if it is not watched until then. */
	if (!STATE_GOES_WITH_TASK)
		drop_state(task);
	return NULL;
}

/* A set of cgroups is another one as soon as the thread moves: one comparison for the four steps to its id.
 */
static __always_inline bool is_current(const struct sched_state *st, const struct target_rules *rules,
				       struct task_struct *task)
{
	return st->generation == rules->generation && st->cgroups == (u64)FIELD(task, cgroups);
}

/* The state of a thread of a target; NULL for every other thread. */
static __always_inline struct sched_state *find_thread(struct task_struct *task,
						       const struct target_rules *rules)
{
	struct sched_state *st = NULL;
	u64 cgroup;

	if (FIELD(task, flags) & PF_KTHREAD)
		return NULL;
	if (!surely_stateless(task))
		st = state_of(task);
	if (st && is_current(st, rules, task))
		return st->watched ? st : NULL;
	cgroup = cgroup_of_thread(task);
	if (!st && surely_unwatched(rules, cgroup, FIELD(task, tgid)))
		return NULL;
	return bind_thread(task, cgroup);
}
