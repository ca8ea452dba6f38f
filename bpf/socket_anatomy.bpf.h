/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * What the time of a request went to.
 *
 * The sched probe keeps for every thread how long it has waited for what (thread_record.bpf.h). The last read
 * of a request notes where these sums stand; the first byte of the reply tells what the request waited for:
 * - by the same thread: the difference of the two.
 * - by another one: that had begun when its previous reply was out, or, if it was waiting for work when the
 *   request was read, when that wait ended. Until then nobody worked on the request: that is its hand-over.
 * Where the reader has other requests open meanwhile, the parts are those of all of them: such requests are
 * counted apart.
 */
#pragma once

#include "socket_readers.bpf.h"
#include "socket_recorder.bpf.h"

/* The sched probe's map, whichever type it has. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1);
	__type(key, u64);
	__type(value, struct sched_state);
} sched_states SEC(".maps");

static __always_inline void note_latest_read(const struct socket_state *st, u64 now)
{
	u32 index = st->target.index;
	struct latest_read *latest = bpf_map_lookup_elem(&latest_reads, &index);

	if (latest && elapsed(latest->at, now) >= LATEST_READ_NS)
		*(volatile u64 *)&latest->at = now;
}

/* Of the current thread; NULL if nothing is known of it, or it works for others. */
static __always_inline struct thread_waits *current_waits(void)
{
	struct sched_state *thread = NULL;
	u64 key;

	if (threads_in == THREADS_IN_STORAGE) {
		thread = bpf_task_storage_get(&sched_states, bpf_get_current_task_btf(), NULL, 0);
	} else if (threads_in == THREADS_IN_HASH) {
		key = bpf_get_current_task();
		thread = bpf_map_lookup_elem(&sched_states, &key);
	}
	if (!thread || thread->state >= TACHO_THREAD_STATES || !thread->waits.key)
		return NULL;
	/* It runs, whatever is known of it: there are kernels that do not tell of every switch. */
	if (thread->state == TACHO_THREAD_RUNNABLE)
		settle_delay(thread, TACHO_PART_RUNQUEUE - TACHO_FIRST_WAIT, delays_of(current_task()));
	return &thread->waits;
}

static __always_inline int take_read(struct socket_state *st, u64 now, u32 first, u32 may_stay_open)
{
	struct thread_waits *waits = current_waits();

	note_latest_read(st, now);
	if (!waits) {
		st->reader = 0;
		return 0;
	}
	if (!waits->serving) {
		waits->calls = 0;
		waits->calls_ns = 0;
		waits->longest_call_ns = 0;
	}
	waits->serving = now;
	if (first)
		note_reader(st, waits, may_stay_open);
	if (st->reader == waits->key && st->read_mark.stops == waits->stops)
		return 0;
	st->reader = waits->key;
	take_mark(&st->read_mark, waits);
	return 0;
}

/* Had the thread nothing to do when that was read, until the wait ended? */
static __always_inline bool waited_for(const struct wait_mark *mark, u64 read)
{
	return mark->waited == WAITED_FOR_WORK || elapsed(read, mark->at) <= (u64)mark->waited << WAIT_SHIFT;
}

/*
 * When this thread began with a request that another one had read, and where its sums stood then: `start`
 * and `from`. @return false if that cannot be told
 */
static __always_inline bool find_start(struct thread_waits *waits, u64 read)
{
	u64 replied = waits->marks[MARK_REPLY].at;
	u64 earliest = ~0ULL, at, from;

	*(volatile u64 *)&waits->from = MARK_REPLY;
	*(volatile u64 *)&waits->start = replied;
	if (replied > read)
		return true;
	if (waits->idle_lost > read)
		return false;
	*(volatile u64 *)&waits->start = earliest;
	for (u32 i = MARK_IDLE; i < WAIT_MARKS; i++) {
		at = waits->marks[i].at;
		if (at > read && at < *(volatile u64 *)&waits->start) {
			*(volatile u64 *)&waits->start = at;
			*(volatile u64 *)&waits->from = i;
		}
	}
	from = *(volatile u64 *)&waits->from;
	if (*(volatile u64 *)&waits->start != earliest && from < WAIT_MARKS) {
		/* The place is to be computed behind the bound: verifiers up to 6.1 do not go back to it. */
		barrier_var(from);
		if (waited_for(&waits->marks[from], read))
			return true;
	}
	/* It was at something that nothing is known of, and went on with this one. */
	*(volatile u64 *)&waits->start = 0;
	for (u32 i = 0; i < WAIT_MARKS; i++) {
		at = waits->marks[i].at;
		if (at <= read && at >= *(volatile u64 *)&waits->start) {
			*(volatile u64 *)&waits->start = at;
			*(volatile u64 *)&waits->from = i;
		}
	}
	*(volatile u64 *)&waits->start = read;
	return true;
}

static __always_inline void add_part(struct thread_waits *waits, struct request_parts *parts, u32 part,
				     u64 ns)
{
	waits->spent[part] = ns;
	if (ns)
		add(&parts->ns[part], ns);
}

/* Of the service time, as far as it lasts. */
static __always_inline void take_part(struct thread_waits *waits, struct request_parts *parts, u32 part,
				      u64 ns)
{
	u64 left = *(volatile u64 *)&waits->left;

	if (ns > left)
		ns = left;
	*(volatile u64 *)&waits->left = left - ns;
	add_part(waits, parts, part, ns);
}

/* Since `base`. `tail`: what the reply's own call took after its first byte had left. */
static __always_inline void take_waits(struct thread_waits *waits, struct request_parts *parts, u64 tail)
{
	for (u32 i = 0; i < TACHO_WAITS; i++) {
		u64 ns = (u64)((u32)(waits->sums[i] >> WAIT_SHIFT) - waits->base.waits[i]) << WAIT_SHIFT;

		if (i == TACHO_PART_NETWORK - TACHO_FIRST_WAIT)
			ns = elapsed(tail, ns);
		take_part(waits, parts, TACHO_FIRST_WAIT + i, ns);
	}
}

static __always_inline void charge_request(struct socket_state *st, struct socket_shard *shard,
					   struct thread_waits *waits, u64 first, u64 now)
{
	u64 tail = elapsed(first, now), duration = elapsed(st->turn_arrival, first), handover = 0, mode, from;
	u32 index = st->target.index;
	struct socket_chains *chains = bpf_map_lookup_elem(&socket_chains, &index);
	struct request_parts *parts;

	if (!chains)
		return;
	*(volatile u64 *)&waits->slow = chains->slow_ns && duration > chains->slow_ns;
	*(volatile u64 *)&waits->left = elapsed(st->last_read, first);
	parts = &shard->parts[*(volatile u64 *)&waits->slow & 1];
	if (st->reader == waits->key) {
		mode = was_alone(st) ? TACHO_SERVED_BY_READER : TACHO_SERVED_INTERLEAVED;
		waits->base = st->read_mark;
	} else {
		if (elapsed(st->last_read, waits->begun) || !find_start(waits, st->last_read))
			return;
		from = *(volatile u64 *)&waits->from;
		if (from >= WAIT_MARKS)
			return;
		barrier_var(from);
		mode = TACHO_SERVED_HANDED_OVER;
		waits->base = waits->marks[from];
		handover = elapsed(st->last_read, waits->start);
		observe(&shard->handover, handover);
	}
	if (mode < TACHO_SERVING_MODES)
		add(&parts->requests[mode], 1);
	add_part(waits, parts, TACHO_PART_QUEUE, elapsed(st->turn_arrival, st->turn_read));
	add_part(waits, parts, TACHO_PART_RECEIVE, elapsed(st->turn_read, st->last_read));
	take_part(waits, parts, TACHO_PART_HANDOVER, handover);
	if (waits->base.stops != waits->stops)
		take_waits(waits, parts, tail);
	else
		__builtin_memset(&waits->spent[TACHO_FIRST_WAIT], 0, TACHO_WAITS * sizeof(u64));
	take_part(waits, parts, TACHO_PART_CPU, *(volatile u64 *)&waits->left);
	if (is_told_of(chains, first, duration))
		record_request(chains, shard, st, waits, first, duration, mode);
}

/* The current thread has answered something: what it does from now on is for others. */
static __always_inline void note_reply(struct thread_waits *waits, u64 now)
{
	struct wait_mark *mark = &waits->marks[MARK_REPLY];

	mark->at = now;
	waits->serving = 0;
	waits->idle_ends = 0;
	waits->idle_lost = 0;
	waits->idle_checked = now;
	if (mark->stops != waits->stops)
		take_mark(mark, waits);
}

static __always_inline int take_answer(struct socket_state *st, struct socket_shard *shard, u64 first,
				       u64 now)
{
	struct thread_waits *waits = current_waits();

	if (!waits)
		return 0;
	if (st->reader)
		charge_request(st, shard, waits, first, now);
	note_reply(waits, now);
	return 0;
}

#if !GLOBAL_POINTERS
#define TAKE_READ take_read
#define TAKE_ANSWER take_answer
#else
/*
 * Global functions: the verifier works through them once a program, and not on every way that comes here.
 */
__noinline int take_read_once(struct socket_state *st, u64 now, u32 first, u32 may_stay_open)
{
	return st ? take_read(st, now, first, may_stay_open) : 0;
}

__noinline int take_answer_once(struct socket_state *st, struct socket_shard *shard, u64 first, u64 now)
{
	return st && shard ? take_answer(st, shard, first, now) : 0;
}

#define TAKE_READ take_read_once
#define TAKE_ANSWER take_answer_once
#endif

/*
 * Where anatomy is shed, the threads of a request are not known, neither while that is so nor later.
 * release_reader() still runs at its end.
 */
static __always_inline bool sheds_anatomy(const struct socket_state *st)
{
	return st->shed >= TACHO_SHED_ANATOMY;
}

/* A read of a request. `first`: it begins a turn; `may_stay_open`: nothing will tell if that is given up. */
static __always_inline void note_read(struct socket_state *st, u64 now, bool first, bool may_stay_open)
{
	if (threads_in == THREADS_UNKNOWN)
		return;
	if (sheds_anatomy(st))
		st->reader = 0;
	else
		TAKE_READ(st, now, first, may_stay_open);
}

/* The open turn is answered by a send of so many bytes, whose first one left at `first`. */
static __always_inline void note_answer(struct socket_state *st, struct socket_shard *shard, struct sock *sk,
					u64 first, u64 now, u32 bytes)
{
	if (threads_in == THREADS_UNKNOWN || sheds_anatomy(st))
		return;
	*(volatile u64 *)&st->socket = (u64)sk;
	*(volatile u32 *)&st->reply_bytes = bytes;
	TAKE_ANSWER(st, shard, first, now);
}

/*
 * The call of a client ends now: does the thread make it for a request that it has read and not answered?
 */
static __always_inline bool note_call_in_line(const struct socket_state *st, u64 now)
{
	u64 begun = st->last_send, ns = elapsed(begun, now);
	struct thread_waits *waits;

	if (threads_in == THREADS_UNKNOWN || sheds_anatomy(st))
		return false;
	waits = current_waits();
	if (!waits || !waits->serving || (s64)(begun - waits->serving) < 0)
		return false;
	waits->calls++;
	waits->calls_ns += ns;
	if (ns > waits->longest_call_ns) {
		waits->longest_call_ns = ns;
		waits->longest_call_peer = st->peer;
	}
	return true;
}
