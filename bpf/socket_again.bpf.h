/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * A second program for events for which the kernel skips the first one.
 *
 * The kernel skips a tracing program on a CPU on which it is running already. Since Linux 7.0 tracepoints
 * leave preemption enabled: while a task is preempted within a program, the program is skipped for the events
 * of all other tasks on that CPU. So a second program follows behind the same tracepoint. The first one
 * leaves a note at the socket, the second one removes it; if there is no note, the second one does the work
 * of the first.
 *
 * One gap remains: a second program that is skipped itself leaves the note behind. At a stream the note is
 * its thread's, so the next pair of programs of that thread removes it; a third thread that sends or receives
 * at the same time takes the first one's place. At a datagram socket, which many threads may share, notes are
 * counted, and each one that is left hides one skipped run of the first program later on
 * (tacho_probe_misses_total counts the skipped runs of both). bpf_preempt_disable is no remedy: the
 * preemption then happens in the call that ends it, which is still within the program.
 */
#pragma once

#include "socket_storage.bpf.h"

/* Set before loading; without it nothing is noted, and the second programs are not loaded. */
const volatile __u32 preemptible_tracepoints = 0;

/* Not at listening sockets: connections inherit what is written there. */
static __always_inline struct socket_state *noticeable_state(struct sock *sk)
{
	struct socket_state *st = state_of(sk);

	return st && st->role != TACHO_ROLE_LISTENER ? st : NULL;
}

/* The task of the event; what interrupts an idle CPU stays there. */
static __always_inline u64 note_of_thread(void)
{
	u32 thread = bpf_get_current_pid_tgid();

	return thread ? thread : 1ULL << 32 | bpf_get_smp_processor_id();
}

static __always_inline void leave_note(struct sock *sk, enum socket_event event)
{
	struct socket_state *st = noticeable_state(sk);
	u64 mine = note_of_thread();
	u64 *notes;

	if (!st)
		return;
	notes = st->notes[event];
	if (FIELD(sk, sk_type) == SOCK_DGRAM)
		__sync_fetch_and_add(&notes[0], 1);
	else if (*(volatile u64 *)&notes[0] != mine && !replace(&notes[0], 0, mine) &&
		 *(volatile u64 *)&notes[1] != mine && !replace(&notes[1], 0, mine))
		*(volatile u64 *)&notes[0] = mine;
}

/* @return whether the first program has seen the event */
static __always_inline bool take_note(struct sock *sk, enum socket_event event)
{
	struct socket_state *st = noticeable_state(sk);
	u64 mine = note_of_thread();
	u64 *notes;

	if (!st)
		return false;
	notes = st->notes[event];
	if (FIELD(sk, sk_type) != SOCK_DGRAM)
		return replace(&notes[0], mine, 0) || replace(&notes[1], mine, 0);
	if (!*(volatile u64 *)&notes[0])
		return false;
	__sync_fetch_and_add(&notes[0], -1);
	return true;
}

static __always_inline bool is_unwatched_task(void)
{
	struct target_rules *rules = get_rules();

	return !rules || is_surely_unwatched_here(rules, current_cgroup());
}

/* A program, and its second one. What is `unwatched` for one must be so for the other. */
#define REPEATED_TRACEPOINT(tracepoint, name, event, unwatched, call, arguments...)                          \
	SEC("tp_btf/" #tracepoint)                                                                           \
	int BPF_PROG(name, ##arguments)                                                                      \
	{                                                                                                    \
		call;                                                                                        \
		if (preemptible_tracepoints && !(unwatched))                                                 \
			leave_note(sk, event);                                                               \
		return 0;                                                                                    \
	}                                                                                                    \
	SEC("tp_btf/" #tracepoint)                                                                           \
	int BPF_PROG(name##_again, ##arguments)                                                              \
	{                                                                                                    \
		if (!(unwatched) && !take_note(sk, event))                                                   \
			call;                                                                                \
		return 0;                                                                                    \
	}
