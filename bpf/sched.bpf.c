// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/*
 * The states of the threads of targets: running, waiting for a CPU, sleeping, blocked; and their system
 * calls.
 *
 * sched_switch reports every beginning and end of running, the sched_wakeup tracepoints the end of a sleep.
 * All of them hold a run queue's lock, so the programs do little: no ring buffer, no lock, and memory only
 * from sources that are allowed in any context. Only one change of a thread's state happens at a time, since
 * it is made under that lock. Threads that sleep already are found by walking the tasks.
 */
#include "lib/own_time.bpf.h"
#include "sched_affinity.bpf.h"
#include "sched_thread.bpf.h"

char LICENSE[] SEC("license") = "GPL";

/* Set before loading: where a system call is counted (sched_shard.calls), by its number. */
const volatile __u8 call_slots[TACHO_SYSCALLS] = {};

/* How often a thread's affinity is looked at. */
#define AFFINITY_INTERVAL_NS 1000000000ULL

static __always_inline u32 state_off_cpu(struct task_struct *task, long bits)
{
	/* TASK_WAKING: somebody wakes it at this very moment. */
	if (bits & (TASK_INTERRUPTIBLE | TASK_WAKING))
		return TACHO_THREAD_SLEEPING;
	return BITFIELD(task, in_iowait) ? TACHO_THREAD_IOWAIT : TACHO_THREAD_BLOCKED;
}

/* Notes the system call that a thread sleeps in. Workers of io_uring are in none, though their registers say
 * 0.
 */
static __always_inline void fall_asleep(struct sched_state *st, struct task_struct *task,
					const struct pt_regs *regs)
{
	s64 number = (s64)FIELD(regs, SYSCALL_NUMBER);

	if (FIELD(task, flags) & (PF_IO_WORKER | PF_USER_WORKER) || number < 0)
		number = NO_SYSCALL;
	if (number == NO_SYSCALL)
		st->call = TACHO_OFFCPU_NONE;
	else
		st->call = number < TACHO_SYSCALLS ? call_slots[number] : TACHO_OFFCPU_OTHER;
	/* As long as a wait is missing in its sums, it does not matter what this one is for. */
	if (anatomy && !st->waits.shed)
		st->wait = wait_of(task, st->state, number, regs);
}

static __always_inline void switch_in(struct sched_state *st, struct task_struct *task, u64 now)
{
	u32 shard = process_shard();
	struct sched_shard *sums = get_shard(&st->target, shard);
	/* `now` may be from before the other thread was switched out. */
	u64 since = st->since, begun = begin_own_time(since);

	if (!sums)
		return;
	/* Clocks of two CPUs may differ a little. */
	if (st->state == TACHO_THREAD_RUNNABLE)
		observe(&sums->runqueue_delay, now > st->since ? now - st->since : 0);
	mark_change(&sums->begin);
	end_state(st, sums, shard, now);
	st->state = TACHO_THREAD_RUNNING;
	st->since = now;
	begin_state(st, sums, shard);
	mark_change(&sums->end);
	if (now - st->affinity_at > AFFINITY_INTERVAL_NS) {
		st->affinity_at = now;
		note_affinity(&sums->affinity[(now >> TACHO_AFFINITY_SHIFT) & 1], task, now);
	}
	end_own_time(&sums->own_ns, since, begun);
}

/* Has a thread that waits for a CPU by the events got one meanwhile? */
static __always_inline bool was_delayed(const struct sched_state *st, struct task_struct *task)
{
	return anatomy && st->state == TACHO_THREAD_RUNNABLE && delays_of(task) != st->waits.delays;
}

/* Events were missed before. The socket probe may have settled the wait (current_waits()). */
static __noinline void switch_in_late(struct sched_state *st, struct task_struct *task, u64 now)
{
	/* Sums in which a wait is missing begin anew (end_wait()). */
	bool delayed = !st->waits.shed && was_delayed(st, task);
	u64 waited;

	if (delayed)
		settle_delay(st, WAIT(RUNQUEUE), delays_of(task));
	waited = st->waits.sums[WAIT(RUNQUEUE)];
	switch_in(st, task, now);
	if (delayed)
		st->waits.sums[WAIT(RUNQUEUE)] = waited;
}

/* The thread leaves the CPU; the task is the current one. */
static __always_inline void switch_out(struct sched_state *st, struct task_struct *task, bool preempted,
				       u64 now)
{
	u32 shard = process_shard();
	struct sched_shard *sums = get_shard(&st->target, shard);
	long bits = state_bits(task);

	if (!sums)
		goto out;
	if (st->state != TACHO_THREAD_RUNNING && st->state != NO_STATE)
		switch_in_late(st, task, switched_in_at(task, st->since, now));
	mark_change(&sums->begin);
	end_state(st, sums, shard, now);
	if (preempted || !bits) {
		st->state = TACHO_THREAD_RUNNABLE;
	} else if (!(bits & TASK_DEAD)) {
		st->state = state_off_cpu(task, bits);
		fall_asleep(st, task, current_registers());
	}
	st->waits.stops++;
	if (anatomy) {
		st->waits.delays = delays_of(task);
		st->waits.settled = 0;
	}
	st->since = now;
	begin_state(st, sums, shard);
	mark_change(&sums->end);
	end_own_time(&sums->own_ns, now, now);
out:
	/* Giving memory back is no work for the scheduler, where it goes with the task. */
	if ((bits & TASK_DEAD) && !STATE_GOES_WITH_TASK)
		drop_state(task);
}

static __always_inline void on_switch(bool preempted, struct task_struct *prev, struct task_struct *next)
{
	struct target_rules *rules = get_rules();
	struct sched_state *st;
	u64 now = 0;

	if (!rules)
		return;
	st = find_thread(prev, rules);
	if (st) {
		now = bpf_ktime_get_ns();
		switch_out(st, prev, preempted, now);
	}
	st = find_thread(next, rules);
	if (!st)
		return;
	if (!now)
		now = bpf_ktime_get_ns();
	if (was_delayed(st, next))
		switch_in_late(st, next, now);
	else
		switch_in(st, next, now);
}

static __always_inline void become_runnable(struct sched_state *st)
{
	u32 shard = process_shard();
	struct sched_shard *sums = get_shard(&st->target, shard);
	u64 now;

	if (!sums)
		return;
	now = bpf_ktime_get_ns();
	mark_change(&sums->begin);
	end_state(st, sums, shard, now);
	st->state = TACHO_THREAD_RUNNABLE;
	st->since = now;
	begin_state(st, sums, shard);
	mark_change(&sums->end);
	end_own_time(&sums->own_ns, now, now);
}

/* Of a thread that has slept. The event also comes for threads that were about to, with interrupts on: those
 * run.
 */
static __always_inline void on_wakeup(struct task_struct *task)
{
	struct target_rules *rules = get_rules();
	struct sched_state *st;

	if (!rules || surely_stateless(task))
		return;
	st = state_of(task);
	if (!st || !is_off_cpu(st->state))
		return;
	if (!is_current(st, rules, task))
		st = bind_thread(task, cgroup_of_thread(task));
	if (st)
		become_runnable(st);
}

static __always_inline void on_first_wakeup(struct task_struct *task)
{
	struct target_rules *rules = get_rules();
	struct sched_state *st = rules ? find_thread(task, rules) : NULL;

	if (st)
		become_runnable(st);
}

/* Linux 5.18 adds the state at the end (fa2c3254d7cf, 9c2136be0878). What the task says is as good: while it
 * is switched out, only a waker can change it, to TASK_WAKING.
 */
ON_TRACEPOINT(sched_switch, sched_switched, on_switch(preempted, prev, next), bool preempted,
	      struct task_struct *prev, struct task_struct *next)
ON_TRACEPOINT(sched_wakeup, sched_woken, on_wakeup(task), struct task_struct *task)
ON_TRACEPOINT(sched_wakeup_new, sched_woken_first, on_first_wakeup(task), struct task_struct *task)

static __always_inline u32 state_now(struct task_struct *task)
{
	long bits = state_bits(task);

	if (FIELD(task, exit_state) || bits & (TASK_DEAD | TASK_NEW))
		return NO_STATE;
	/* An int up to Linux 6.18, a u8 in 7.2: this reads either. */
	if (BPF_CORE_READ_BITFIELD_PROBED(task, on_cpu))
		return TACHO_THREAD_RUNNING;
	return bits && !(bits & TASK_WAKING) ? state_off_cpu(task, bits) : TACHO_THREAD_RUNNABLE;
}

/* Threads of watched targets that no event has told of: their state counts from now on. An event may come
 * meanwhile on another CPU; so the memory is made with all that it needs, and whoever made it counts.
 */
SEC("iter/task")
int sched_adopt(struct bpf_iter__task *ctx)
{
	struct target_rules *rules = get_rules();
	struct task_struct *task = ctx->task;
	struct sched_state *first = first_state(FIRST_BY_WALK);
	struct thread_owner owner = {};
	struct sched_shard *sums;
	struct sched_state *st;
	u64 cgroup;

	if (!task || !rules || !first || FIELD(task, flags) & PF_KTHREAD)
		return 0;
	cgroup = cgroup_of(task);
	if (surely_unwatched(rules, cgroup, FIELD(task, tgid)) || state_of(task))
		return 0;
	first->state = state_now(task);
	find_owner(&owner, task, rules, cgroup);
	if (first->state == NO_STATE || !owner.watched)
		return 0;
	set_owner(first, &owner);
	sums = get_shard(&first->target, SHARED_SHARD);
	if (!sums)
		return 0;
	first->call = 0;
	if (is_off_cpu(first->state))
		fall_asleep(first, task, task_registers(task));
	begin_record(first, task);
	first->waits.delays = delays_of(task);
	first->since = bpf_ktime_get_ns();
	first->adopted = first->since;
	st = new_state(task, first);
	if (!st)
		count_loss(TACHO_LOST_TASK_STATE);
	if (!st || st->adopted != first->adopted)
		return 0;
	mark_shared_change(&sums->begin);
	begin_state(first, sums, SHARED_SHARD);
	mark_shared_change(&sums->end);
	return 0;
}
