// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/*
 * How long watched threads wait in epoll_wait, poll and select.
 *
 * The functions behind these calls come first, then the scheduler (poll_switch.bpf.h): no other call pays for
 * either. Tracepoints of system calls are used only when they are asked for, since each puts all calls of the
 * machine on their slow path: the classic ones of just these calls, or sys_enter and sys_exit, which run for
 * every call and pick these out. Waits that are older than the probe or than its target are found by walking
 * the tasks.
 */
#include "poll_calls.bpf.h"
#include "poll_switch.bpf.h"
#include "poll_waits.bpf.h"

char LICENSE[] SEC("license") = "GPL";

/* The state of the current thread if it is watched. */
static __always_inline struct poll_state *watched_thread(const struct target_rules *rules)
{
	u64 cgroup = current_cgroup();
	struct task_struct *task;
	struct poll_state *st;

	if (is_surely_unwatched_here(rules, cgroup))
		return NULL;
	task = current_task();
	st = state_of(task);
	if (!st || st->generation != rules->generation ||
	    st->owner != (st->owned_by_process ? current_tgid() : cgroup))
		st = bind_thread(task, rules, cgroup, current_tgid(), true);
	return st;
}

/* A macro: only of watched threads is looked at how they call. */
#define ON_ENTER(nonblocking)                                                                                \
	({                                                                                                   \
		struct target_rules *rules = get_rules();                                                    \
		struct poll_state *st = rules ? watched_thread(rules) : NULL;                                \
                                                                                                             \
		if (st)                                                                                      \
			begin_wait(st, rules, nonblocking, process_shard());                                 \
	})

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

static __always_inline bool is_nonblocking_here(void)
{
	struct pt_regs *regs = current_registers();

	return is_nonblocking_call(regs, FIELD(regs, SYSCALL_NUMBER));
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
		ON_ENTER(is_nonblocking);                                                                    \
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
		ON_ENTER(is_nonblocking_here());                                                             \
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
		ON_ENTER(is_nonblocking_call(regs, number));
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

ON_TRACEPOINT(sched_switch, poll_switched, on_switch(preempted, prev, next), bool preempted,
	      struct task_struct *prev, struct task_struct *next)
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
	st = bind_thread(task, rules, cgroup, FIELD(task, tgid), true);
	if (st)
		begin_wait(st, rules, is_nonblocking_call(regs, BPF_CORE_READ(regs, SYSCALL_NUMBER)),
			   SHARED_SHARD);
	return 0;
}
