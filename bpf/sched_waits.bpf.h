/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* What a thread waits for while it does not run (thread_record.bpf.h). */
#pragma once

#include "sched_state.bpf.h"

#include <linux/stat.h>

/* Set before loading: a truth value; what a system call waits for, by its number. */
const volatile __u32 anatomy = 0;
const volatile __u8 call_waits[TACHO_SYSCALLS] = {};

#define NO_SYSCALL (-1)
#define WAIT(part) (TACHO_PART_##part - TACHO_FIRST_WAIT)

static __always_inline bool is_off_cpu(u32 state)
{
	return state >= TACHO_THREAD_SLEEPING && state < TACHO_THREAD_STATES;
}

/* Is it a socket that the first argument of the thread's system call names? */
static __always_inline bool calls_for_socket(struct task_struct *task, const struct pt_regs *regs)
{
	u64 number = FIELD(regs, FIRST_ARGUMENT);
	struct files_struct *open = FIELD(task, files);
	struct fdtable *table = open ? FIELD(open, fdt) : NULL;
	struct file **files = table ? FIELD(table, fd) : NULL;
	struct file *file = NULL;

	if (!files || number >= FIELD(table, max_fds) ||
	    bpf_probe_read_kernel(&file, sizeof(file), files + number))
		return false;
	return (BPF_CORE_READ(file, f_inode, i_mode) & S_IFMT) == S_IFSOCK;
}

/*
 * What a thread waits for that sleeps in that system call. Disks are waited for in any of them, and by page
 * faults. A call that reads or writes any kind of file is asked which: what a disk brings cannot be
 * interrupted.
 */
static __always_inline u8 wait_of(struct task_struct *task, u32 state, s64 number, const struct pt_regs *regs)
{
	u8 part;

	if (state == TACHO_THREAD_IOWAIT)
		return WAIT(DISK);
	if (number < 0 || number >= TACHO_SYSCALLS)
		return WAIT(OTHER);
	part = call_waits[number];
	if (part != TACHO_WAITS_FOR_FILE)
		return part;
	if (state == TACHO_THREAD_BLOCKED)
		return WAIT(DISK);
	return calls_for_socket(task, regs) ? WAIT(NETWORK) : WAIT(OTHER);
}

/* Whether the target has read a request since. */
static __always_inline bool has_read_since(const struct target_ref *target, u64 time)
{
	u32 index = target->index;
	const struct latest_read *latest = bpf_map_lookup_elem(&latest_reads, &index);

	return latest && latest->at + LATEST_READ_NS >= time;
}

/*
 * The thread had nothing to do, or waited for a lock: whatever it works on from now on may be what it was
 * woken for, if that has been read since it was looked at last. Else it is a timer of its own, or a wait
 * within its work.
 */
static __always_inline void note_idle_end(struct sched_state *st, u64 now)
{
	struct thread_waits *waits = &st->waits;
	u64 replied = waits->marks[MARK_REPLY].at;
	bool first = waits->idle_checked == replied && st->since - replied < BEHIND_REPLY_NS;
	u32 ends = waits->idle_ends;
	u32 place = ends ? MARK_IDLE + 1 + ((ends - 1) & 1) : MARK_IDLE;
	struct wait_mark *mark;

	if (!has_read_since(&st->target, waits->idle_checked))
		place = MARK_BEFORE;
	waits->idle_checked = now;
	/* A wait within the work that began at one that is kept. */
	if (place == MARK_BEFORE && ends)
		return;
	mark = &waits->marks[place];
	if (place >= MARK_IDLE) {
		if (ends >= IDLE_MARKS)
			waits->idle_lost = mark->at;
		waits->idle_ends = ends + 1;
	}
	mark->waited = first ? WAITED_FOR_WORK : (now - st->since) >> WAIT_SHIFT;
	mark->at = now;
	take_mark(mark, waits);
}

/*
 * Anatomy is shed, and a wait is missing in the sums. No request may be charged by them any more: the thread
 * is nobody's until they begin anew.
 */
static __always_inline void shed_record(struct thread_waits *waits)
{
	if (!waits->key)
		return;
	waits->shed = waits->key;
	waits->key = 0;
}

/* As of a thread that has just been made. */
static __noinline void renew_record(struct thread_waits *waits, u64 now)
{
	u64 key = (waits->shed & ~0xffffffffULL) | (u32)now;
	u64 delays = waits->delays, settled = waits->settled;

	__builtin_memset(waits, 0, sizeof(*waits));
	waits->key = key;
	waits->delays = delays;
	waits->settled = settled;
	waits->begun = now;
}

/* `state` ends now. */
static __always_inline void end_wait(struct sched_state *st, u32 state, u64 now)
{
	u64 wait = state == TACHO_THREAD_RUNNABLE ? WAIT(RUNQUEUE) : st->wait;
	const struct target_rules *rules;

	if (!anatomy || state == TACHO_THREAD_RUNNING || state >= TACHO_THREAD_STATES)
		return;
	rules = get_rules();
	if (rules && is_shed(rules, &st->target, TACHO_SHED_ANATOMY)) {
		shed_record(&st->waits);
		return;
	}
	if (st->waits.shed) {
		renew_record(&st->waits, now);
		return;
	}
	/* One register for the bound and the use of it: verifiers up to 6.1 do not know that copies are
	 * equal. */
	barrier_var(wait);
	if (wait >= TACHO_WAITS)
		return;
	st->waits.sums[wait] += now > st->since ? now - st->since : 0;
	if (wait == WAIT(LOCK) || wait == WAIT(EVENT))
		note_idle_end(st, now);
}

/* Workers of io_uring answer what others have read, who wait for them or do not. */
static __always_inline void begin_record(struct sched_state *st, struct task_struct *task)
{
	bool worker = FIELD(task, flags) & (PF_IO_WORKER | PF_USER_WORKER);

	st->waits.key = worker ? 0 : (u64)FIELD(task, pid) << 32 | (u32)bpf_ktime_get_ns();
}
