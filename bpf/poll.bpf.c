// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/*
 * How long watched threads wait in epoll_wait, poll and select.
 *
 * The classic tracepoints of just these calls come first: they run for no other call. Where tracefs is
 * unavailable, sys_enter and sys_exit run for every call of the machine and pick these out. Waits that are
 * older than the probe or than its target are found by walking the tasks.
 */
#include "lib/loss.bpf.h"
#include "lib/own_time.bpf.h"
#include "poll_calls.bpf.h"
#include "poll_state.bpf.h"

char LICENSE[] SEC("license") = "GPL";

/* A call that begins sooner after it was found under way is that one: its beginning was told late. */
#define ADOPTION_NS 1000000

/* Its wait may be over for long, unseen. */
static __always_inline void forget_thread(struct poll_state *st)
{
	struct poll_shard *shared =
	    st->counted && !is_stale(&st->target) ? get_shard(&st->target, SHARED_SHARD) : NULL;

	if (shared) {
		add_atomic(&shared->threads, -1);
		if (st->started) {
			mark_shared_change(&shared->begin);
			add_atomic(&shared->waiters, -1);
			add_atomic(&shared->started_ns, -st->started);
			mark_shared_change(&shared->end);
		}
	}
	st->counted = false;
	st->started = 0;
}

/* Charges the thread to the target that it belongs to now; NULL if that is none. Once per thread and change.
 */
static __always_inline struct poll_state *bind_thread(struct task_struct *task,
						      const struct target_rules *rules, u64 cgroup, u32 tgid)
{
	struct target_ref *found = find_target(rules, cgroup, tgid);
	struct poll_state *st = state_of(task), first = {};
	struct poll_shard *shared;
	struct target_ref target;

	if (!found) {
		if (st) {
			forget_thread(st);
			drop_state(task);
		}
		return NULL;
	}
	target = *found;
	if (!st)
		st = new_state(task, &first);
	if (!st) {
		count_loss(TACHO_LOST_TASK_STATE);
		return NULL;
	}
	if (was_empty_since(&st->target, st->generation))
		forget_thread(st);
	st->generation = rules->generation;
	st->owned_by_process =
	    !cgroup_may_be_watched(rules, cgroup) || !bpf_map_lookup_elem(&cgroup_targets, &cgroup);
	st->owner = st->owned_by_process ? tgid : cgroup;
	if (st->counted && st->target.index == target.index && st->target.epoch == target.epoch)
		return st;
	forget_thread(st);
	st->target = target;
	shared = get_shard(&target, SHARED_SHARD);
	if (shared) {
		add_atomic(&shared->threads, 1);
		st->counted = true;
	}
	return st;
}

static __always_inline void end_wait(struct poll_state *st, struct poll_shard *shard, u32 outcome, u64 now)
{
	u64 started = st->started;

	st->started = 0;
	mark_change(&shard->begin);
	observe(&shard->duration[outcome], now - started);
	add(&shard->waiters, -1);
	add(&shard->started_ns, -started);
	mark_change(&shard->end);
	end_own_time(&shard->own_ns, now, now);
}

static __always_inline void begin_wait(struct poll_state *st, bool nonblocking, u32 shard_index)
{
	struct poll_shard *shard = get_shard(&st->target, shard_index);
	u64 now;

	if (!shard)
		return;
	now = bpf_ktime_get_ns();
	if (st->started) {
		if (shard_index == SHARED_SHARD || !st->adopted || now - st->started < ADOPTION_NS)
			return;
		/* An older wait whose end was not seen: fexit misses the calls that it was not there for. */
		end_wait(st, shard, TACHO_POLL_READY, now);
	}
	st->nonblocking = nonblocking;
	st->adopted = shard_index == SHARED_SHARD;
	st->started = now;
	if (shard_index == SHARED_SHARD) {
		mark_shared_change(&shard->begin);
		add_atomic(&shard->waiters, 1);
		add_atomic(&shard->started_ns, now);
		mark_shared_change(&shard->end);
	} else {
		mark_change(&shard->begin);
		add(&shard->waiters, 1);
		add(&shard->started_ns, now);
		mark_change(&shard->end);
		end_own_time(&shard->own_ns, now, now);
	}
}

static __always_inline void on_enter(bool nonblocking)
{
	struct target_rules *rules = get_rules();
	u64 cgroup = current_cgroup();
	struct task_struct *task;
	struct poll_state *st;

	if (!rules || is_surely_unwatched_here(rules, cgroup))
		return;
	task = current_task();
	st = state_of(task);
	if (!st || st->generation != rules->generation ||
	    st->owner != (st->owned_by_process ? current_tgid() : cgroup))
		st = bind_thread(task, rules, cgroup, current_tgid());
	if (st)
		begin_wait(st, nonblocking, process_shard());
}

static __always_inline void on_exit(long ret)
{
	struct target_rules *rules = get_rules();
	struct poll_state *st;
	struct poll_shard *shard;
	u32 outcome;

	if (!rules || is_surely_unwatched_here(rules, current_cgroup()))
		return;
	st = state_of(current_task());
	if (!st || !st->started)
		return;
	if (st->generation != rules->generation &&
	    (is_stale(&st->target) || was_empty_since(&st->target, st->generation))) {
		forget_thread(st);
		return;
	}
	shard = get_shard(&st->target, process_shard());
	if (!shard) {
		st->started = 0;
		return;
	}
	if (ret < 0)
		outcome = TACHO_POLL_ERROR;
	else if (st->nonblocking)
		outcome = TACHO_POLL_NONBLOCKING;
	else
		outcome = ret > 0 ? TACHO_POLL_READY : TACHO_POLL_TIMEOUT;
	end_wait(st, shard, outcome, bpf_ktime_get_ns());
}

/* Classic tracepoint of one system call: 8 common bytes, the number, then one long an argument or the result.
 */
struct syscall_enter {
	u64 common;
	s64 number;
	u64 args[6];
};

struct syscall_exit {
	u64 common;
	s64 number;
	s64 ret;
};

#define POLL_CALL(call, is_nonblocking)                                                                      \
	SEC("tp/syscalls/sys_exit_" #call)                                                                   \
	int poll_exit_##call(struct syscall_exit *ctx)                                                       \
	{                                                                                                    \
		on_exit(ctx->ret);                                                                           \
		return 0;                                                                                    \
	}                                                                                                    \
	SEC("tp/syscalls/sys_enter_" #call)                                                                  \
	int poll_enter_##call(struct syscall_enter *ctx)                                                     \
	{                                                                                                    \
		on_enter(is_nonblocking);                                                                    \
		return 0;                                                                                    \
	}

POLL_CALL(epoll_wait, (int)ctx->args[3] == 0)
POLL_CALL(epoll_pwait, (int)ctx->args[3] == 0)
POLL_CALL(epoll_pwait2, is_zero_pair((void *)ctx->args[3]))
POLL_CALL(poll, (int)ctx->args[2] == 0)
POLL_CALL(ppoll, is_zero_pair((void *)ctx->args[2]))
POLL_CALL(select, is_zero_pair((void *)ctx->args[4]))
POLL_CALL(pselect6, is_zero_pair((void *)ctx->args[4]))

/* The functions behind the calls: no other call pays for them. Their arguments differ between kernels. */
#define POLL_FUNCTION(function)                                                                              \
	SEC("fexit/" #function)                                                                              \
	int poll_fexit_##function(u64 *ctx)                                                                  \
	{                                                                                                    \
		on_exit(RESULT_OF_##function(ctx));                                                          \
		return 0;                                                                                    \
	}                                                                                                    \
	SEC("fentry/" #function)                                                                             \
	int poll_fentry_##function(u64 *ctx)                                                                 \
	{                                                                                                    \
		struct pt_regs *regs = current_registers();                                                  \
                                                                                                             \
		on_enter(is_nonblocking_call(regs, BPF_CORE_READ(regs, SYSCALL_NUMBER)));                    \
		return 0;                                                                                    \
	}

/* int (int, struct epoll_event *, int, int or struct timespec64 *) */
#define RESULT_OF_do_epoll_wait(ctx) (int)(ctx)[4]
/* int (struct pollfd *, unsigned int, struct timespec64 *) */
#define RESULT_OF_do_sys_poll(ctx) (int)(ctx)[3]
/* int (int, fd_set *, fd_set *, fd_set *, struct timespec64 *) */
#define RESULT_OF_core_sys_select(ctx) (int)(ctx)[5]

POLL_FUNCTION(do_epoll_wait)
POLL_FUNCTION(do_sys_poll)
POLL_FUNCTION(core_sys_select)

SEC("tp_btf/sys_exit")
int BPF_PROG(poll_raw_exit, struct pt_regs *regs, long ret)
{
	if (is_poll_call(regs->SYSCALL_NUMBER))
		on_exit(ret);
	return 0;
}

SEC("tp_btf/sys_enter")
int BPF_PROG(poll_raw_enter, struct pt_regs *regs, long number)
{
	if (is_poll_call(number))
		on_enter(is_nonblocking_call(regs, number));
	return 0;
}

static __always_inline void on_thread_exit(struct task_struct *task)
{
	struct poll_state *st = state_of(task);

	if (st) {
		forget_thread(st);
		drop_state(task);
	}
}

ON_TRACEPOINT(sched_process_exit, poll_thread_exit, on_thread_exit(task), struct task_struct *task)

/* Threads of watched targets that are waiting already: their wait counts from now on. */
SEC("iter/task")
int poll_adopt(struct bpf_iter__task *ctx)
{
	struct target_rules *rules = get_rules();
	struct task_struct *task = ctx->task;
	struct poll_state *st;
	struct pt_regs *regs;
	u64 cgroup;

	if (!task || !rules)
		return 0;
	cgroup = cgroup_of(task);
	if (surely_unwatched(rules, cgroup, FIELD(task, tgid)))
		return 0;
	st = state_of(task);
	if (st && was_empty_since(&st->target, st->generation))
		forget_thread(st);
	regs = task_registers(task);
	if (!is_interruptible(task) || !is_poll_call(BPF_CORE_READ(regs, SYSCALL_NUMBER)))
		return 0;
	st = bind_thread(task, rules, cgroup, FIELD(task, tgid));
	if (st)
		begin_wait(st, is_nonblocking_call(regs, BPF_CORE_READ(regs, SYSCALL_NUMBER)), SHARED_SHARD);
	return 0;
}
