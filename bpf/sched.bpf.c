// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/*
 * What the threads of targets do: run, wait for a CPU, sleep, are blocked; and in which system call.
 *
 * sched_switch sees every beginning and end of running, the sched_wakeup tracepoints the end of a sleep. All
 * of them hold a run queue's lock, so they do little: no ring buffer, no lock, and memory only from where it
 * may be had in any context. One change of a thread's state is seen at a time, since it is made under that
 * lock. Threads that sleep already are found by walking the tasks.
 */
#include "lib/accumulate.bpf.h"
#include "lib/basic.bpf.h"
#include "lib/loss.bpf.h"
#include "lib/presence.bpf.h"
#include "lib/targets.bpf.h"
#include "sched.h"

char LICENSE[] SEC("license") = "GPL";

/* Set before loading: where a system call is counted (sched_shard.calls), by its number; CPUs that are on. */
const volatile __u8 call_slots[TACHO_SYSCALLS] = {};
const volatile __u32 cpus_online = 1;

/* How often a thread's affinity is looked at. */
#define AFFINITY_INTERVAL_NS 1000000000ULL

#define NO_STATE TACHO_THREAD_STATES

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
};

#ifdef TACHO_BASIC
/* By address of the task. All memory is there from the beginning: these events must not ask for any. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 32768);
	__type(key, u64);
	__type(value, struct sched_state);
} sched_states SEC(".maps");

static __always_inline struct sched_state *state_of(struct task_struct *task)
{
	u64 key = (u64)task;

	return bpf_map_lookup_elem(&sched_states, &key);
}

static __always_inline struct sched_state *new_state(struct task_struct *task, struct sched_state *first)
{
	u64 key = (u64)task;

	bpf_map_update_elem(&sched_states, &key, first, BPF_NOEXIST);
	return bpf_map_lookup_elem(&sched_states, &key);
}

static __always_inline void drop_state(struct task_struct *task)
{
	u64 key = (u64)task;

	bpf_map_delete_elem(&sched_states, &key);
}

static __always_inline bool surely_stateless(struct task_struct *task)
{
	return false;
}

static __always_inline u64 cgroup_of_thread(struct task_struct *task)
{
	return cgroup_of(task);
}
#else
struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct sched_state);
} sched_states SEC(".maps");

static __always_inline struct sched_state *state_of(struct task_struct *task)
{
	return bpf_task_storage_get(&sched_states, task, NULL, 0);
}

static __always_inline struct sched_state *new_state(struct task_struct *task, struct sched_state *first)
{
	return bpf_task_storage_get(&sched_states, task, first, BPF_LOCAL_STORAGE_GET_F_CREATE);
}

/* It goes with the task: giving memory back is no work for the scheduler. */
static __always_inline void drop_state(struct task_struct *task)
{
}

static __always_inline bool surely_stateless(struct task_struct *task)
{
	return !task->bpf_storage;
}

/* cgroup_of() by pointers that the verifier knows. */
static __always_inline u64 cgroup_of_thread(struct task_struct *task)
{
	return cgroup_v1 ? memory_cgroup_of(task) : task->cgroups->dfl_cgrp->kn->id;
}
#endif

/* By target index; each an array of struct sched_shard, whose shape is set before loading. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(__u32));
} sched_blocks SEC(".maps");

static __always_inline struct sched_shard *get_shard(const struct target_ref *target, u32 shard)
{
	u32 index = target->index;
	void *block = bpf_map_lookup_elem(&sched_blocks, &index);

	return block ? bpf_map_lookup_elem(block, &shard) : NULL;
}

static __always_inline bool is_off_cpu(u32 state)
{
	return state >= TACHO_THREAD_SLEEPING && state < TACHO_THREAD_STATES;
}

/* Takes the thread out of its target's sums; within their bracket. */
static __always_inline void end_state(struct sched_state *st, struct sched_shard *sums, u32 shard, u64 now)
{
	u32 state = st->state;
	u32 call = st->call;

	st->state = NO_STATE;
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
	add(&sums->begin, 1);
	end_state(st, sums, shard, bpf_ktime_get_ns());
	add(&sums->end, 1);
}

/* Whose the thread is. */
static __always_inline void find_owner(struct sched_state *st, struct task_struct *task,
				       const struct target_rules *rules, u64 cgroup)
{
	struct target_ref *found;

	/* Both before the look-up: what changes meanwhile is seen the next time. */
	st->generation = rules->generation;
	st->cgroups = (u64)FIELD(task, cgroups);
	found = find_target(rules, cgroup, FIELD(task, tgid));
	st->watched = found;
	if (found)
		st->target = *found;
}

/* Charges the thread to the target that it belongs to now; NULL if that is none. Once per thread and change.
 */
static __noinline struct sched_state *bind_thread(struct task_struct *task, u64 cgroup)
{
	struct sched_state *st = state_of(task);
	struct target_rules *rules = get_rules();
	struct sched_state found = {.state = NO_STATE};

	if (!rules)
		return NULL;
	find_owner(&found, task, rules, cgroup);
	if (!st && !found.watched)
		return NULL;
	if (!st)
		st = new_state(task, &found);
	if (!st) {
		count_loss(TACHO_LOST_TASK_STATE);
		return NULL;
	}
	if (!found.watched || st->target.index != found.target.index ||
	    st->target.epoch != found.target.epoch)
		forget_thread(st);
	st->generation = found.generation;
	st->cgroups = found.cgroups;
	st->watched = found.watched;
	if (!found.watched)
		return NULL;
	st->target = found.target;
	return st;
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

static __always_inline u32 state_off_cpu(struct task_struct *task, long bits)
{
	/* TASK_WAKING: somebody wakes it at this very moment. */
	if (bits & (TASK_INTERRUPTIBLE | TASK_WAKING))
		return TACHO_THREAD_SLEEPING;
#ifdef TACHO_BASIC
	return BPF_CORE_READ_BITFIELD_PROBED(task, in_iowait) ? TACHO_THREAD_IOWAIT : TACHO_THREAD_BLOCKED;
#else
	return BPF_CORE_READ_BITFIELD(task, in_iowait) ? TACHO_THREAD_IOWAIT : TACHO_THREAD_BLOCKED;
#endif
}

/* The system call that a thread sleeps in. Workers of io_uring are in none, though their registers say 0. */
static __always_inline u32 call_slot(struct task_struct *task, const struct pt_regs *regs)
{
	s64 number = (s64)FIELD(regs, SYSCALL_NUMBER);

	if (FIELD(task, flags) & (PF_IO_WORKER | PF_USER_WORKER) || number < 0)
		return TACHO_OFFCPU_NONE;
	return number < TACHO_SYSCALLS ? call_slots[number] : TACHO_OFFCPU_OTHER;
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
	add(&sums->begin, 1);
	end_state(st, sums, shard, now);
	if (preempted || !bits) {
		st->state = TACHO_THREAD_RUNNABLE;
	} else if (!(bits & TASK_DEAD)) {
		st->state = state_off_cpu(task, bits);
		st->call = call_slot(task, current_registers());
	}
	st->since = now;
	begin_state(st, sums, shard);
	add(&sums->end, 1);
out:
	if (bits & TASK_DEAD)
		drop_state(task);
}

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

static __always_inline void switch_in(struct sched_state *st, struct task_struct *task, u64 now)
{
	u32 shard = process_shard();
	struct sched_shard *sums = get_shard(&st->target, shard);

	if (!sums)
		return;
	/* Clocks of two CPUs may differ a little. */
	if (st->state == TACHO_THREAD_RUNNABLE)
		observe(&sums->runqueue_delay, now > st->since ? now - st->since : 0);
	add(&sums->begin, 1);
	end_state(st, sums, shard, now);
	st->state = TACHO_THREAD_RUNNING;
	st->since = now;
	begin_state(st, sums, shard);
	add(&sums->end, 1);
	if (now - st->affinity_at > AFFINITY_INTERVAL_NS) {
		st->affinity_at = now;
		note_affinity(&sums->affinity[(now >> TACHO_AFFINITY_SHIFT) & 1], task, now);
	}
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
	if (st)
		switch_in(st, next, now ? now : bpf_ktime_get_ns());
}

static __always_inline void become_runnable(struct sched_state *st)
{
	u32 shard = process_shard();
	struct sched_shard *sums = get_shard(&st->target, shard);
	u64 now;

	if (!sums)
		return;
	now = bpf_ktime_get_ns();
	add(&sums->begin, 1);
	end_state(st, sums, shard, now);
	st->state = TACHO_THREAD_RUNNABLE;
	st->since = now;
	begin_state(st, sums, shard);
	add(&sums->end, 1);
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
	struct sched_state first = {};
	struct sched_shard *sums;
	struct sched_state *st;
	u64 cgroup;

	if (!task || !rules || FIELD(task, flags) & PF_KTHREAD)
		return 0;
	cgroup = cgroup_of(task);
	if (surely_unwatched(rules, cgroup, FIELD(task, tgid)) || state_of(task))
		return 0;
	first.state = state_now(task);
	find_owner(&first, task, rules, cgroup);
	if (first.state == NO_STATE || !first.watched)
		return 0;
	sums = get_shard(&first.target, SHARED_SHARD);
	if (!sums)
		return 0;
	first.call = is_off_cpu(first.state) ? call_slot(task, task_registers(task)) : 0;
	first.since = bpf_ktime_get_ns();
	first.adopted = first.since;
	st = new_state(task, &first);
	if (!st)
		count_loss(TACHO_LOST_TASK_STATE);
	if (!st || st->adopted != first.adopted)
		return 0;
	add_atomic(&sums->begin, 1);
	begin_state(&first, sums, SHARED_SHARD);
	add_atomic(&sums->end, 1);
	return 0;
}
