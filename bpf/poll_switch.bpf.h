/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Waits in polling calls, by the scheduler: where the functions of the calls cannot be hooked.
 *
 * A wait begins when the thread stops running within such a call, and ends when it runs again. A call that
 * returns at once never stops running, so it is not seen; nor is what a call returned.
 *
 * A call may sleep several times (an event that another thread takes first): that is one wait. Whether the
 * call had returned is known only when the thread stops running again. Until then the wait is neither in
 * progress nor in the histogram: `ended` is set, and the time stays in poll_shard.started_ns, so that the sum
 * of all waits is complete.
 */
#pragma once

#include "poll_calls.bpf.h"
#include "poll_waits.bpf.h"

/*
 * Set before loading: the flag of thread_info that a change of the running thread sets and the return to user
 * mode clears, as a mask. 0: there is none; then each sleep is a wait of its own. It is the FPU's: an
 * interrupt that uses the FPU within the kernel (kernel_fpu_begin) may set it, too, and join two waits.
 */
const volatile __u64 unreturned_flag = 0;

/* Threads that make no system calls of their own, or whose last one is over. */
#define PF_CALLS_NOTHING (PF_KTHREAD | PF_IO_WORKER | PF_USER_WORKER | PF_EXITING)

/* The thread was within the call when it ran last, and is in it still. */
static __always_inline bool has_not_returned(struct task_struct *task)
{
	return unreturned_flag && FIELD(task, thread_info.flags) & unreturned_flag;
}

/* The target may belong to somebody else by now, or have been without members meanwhile. */
static __always_inline bool is_outdated(const struct poll_state *st, const struct target_rules *rules)
{
	return st->generation != rules->generation &&
	       (is_stale(&st->target) || was_empty_since(&st->target, st->generation));
}

/* Moves the thread's part in what is in progress; `waiters` and `ns` are added. */
static __always_inline void change_progress(struct poll_shard *shard, u64 waiters, u64 ns)
{
	mark_change(&shard->begin);
	add(&shard->waiters, waiters);
	add(&shard->started_ns, ns);
	mark_change(&shard->end);
}

static __always_inline void end_sleep(struct poll_state *st, struct poll_shard *shard, u64 at)
{
	st->ended = at;
	change_progress(shard, -1, -at);
}

/* The thread runs again. */
static __always_inline void pause_wait(struct poll_state *st)
{
	struct poll_shard *shard = get_shard(&st->target, process_shard());
	u64 begun = bpf_ktime_get_ns(), now = begun;

	if (!shard) {
		st->started = 0;
		return;
	}
	/* Clocks of two CPUs may differ a little. */
	if (now <= st->started)
		now = st->started + 1;
	end_sleep(st, shard, now);
	end_own_time(&shard->own_ns, begun, begun);
}

/* What becomes of the last wait of a thread that stops running. */
static __always_inline void settle_wait(struct poll_state *st, struct task_struct *task, bool same_call,
					bool sleeps)
{
	struct poll_shard *shard = get_shard(&st->target, process_shard());
	u64 started = st->started;
	u64 ended = st->ended;
	u64 begun = begin_own_time(started);

	if (!shard) {
		st->started = 0;
		return;
	}
	if (!ended) {
		/* That it ran again was missed. */
		ended = switched_in_at(task, started, bpf_ktime_get_ns());
		end_sleep(st, shard, ended);
	}
	if (ended == started) {
		/* It had been found on its way to sleep. */
		st->started = 0;
		st->ended = 0;
	} else if (!same_call) {
		st->started = 0;
		st->ended = 0;
		mark_change(&shard->begin);
		observe(&shard->duration, ended - started);
		add(&shard->completed[TACHO_POLL_BLOCKED], 1);
		add(&shard->started_ns, ended - started);
		mark_change(&shard->end);
	} else if (sleeps) {
		st->ended = 0;
		change_progress(shard, 1, ended);
	}
	end_own_time(&shard->own_ns, started, begun);
}

/* The thread stops running; the task is the current one. */
static __always_inline void switch_out(struct task_struct *task, bool preempted,
				       const struct target_rules *rules)
{
	bool sleeps = !preempted && state_bits(task) & (TASK_INTERRUPTIBLE | TASK_WAKING);
	struct poll_state *st;
	bool polls;
	u64 cgroup;

	if (FIELD(task, flags) & PF_CALLS_NOTHING)
		return;
	cgroup = cgroup_of_thread(task);
	if (surely_unwatched(rules, cgroup, FIELD(task, tgid)))
		return;
	polls = is_poll_call(FIELD(current_registers(), SYSCALL_NUMBER));
	sleeps = sleeps && polls;
	st = surely_stateless(task) ? NULL : state_of(task);
	if (st && is_outdated(st, rules)) {
		forget_thread(st);
	} else if (st && st->started) {
		settle_wait(st, task, polls && has_not_returned(task), sleeps);
		if (st->started)
			return;
	}
	if (!sleeps)
		return;
	if (!st || st->generation != rules->generation ||
	    st->owner != (st->owned_by_process ? FIELD(task, tgid) : cgroup))
		st = bind_thread(task, rules, cgroup, FIELD(task, tgid), false);
	if (st)
		begin_wait(st, rules, false, process_shard());
}

static __always_inline void switch_in(struct task_struct *task, const struct target_rules *rules)
{
	struct poll_state *st;

	if (surely_stateless(task) || FIELD(task, flags) & PF_KTHREAD)
		return;
	st = state_of(task);
	if (!st || !st->started || st->ended)
		return;
	if (is_outdated(st, rules) || surely_unwatched(rules, cgroup_of_thread(task), FIELD(task, tgid)))
		forget_thread(st);
	else
		pause_wait(st);
}

static __always_inline void on_switch(bool preempted, struct task_struct *prev, struct task_struct *next)
{
	struct target_rules *rules = get_rules();

	if (!rules)
		return;
	switch_out(prev, preempted, rules);
	switch_in(next, rules);
}
