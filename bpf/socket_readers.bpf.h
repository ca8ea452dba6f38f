/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Which thread has read a request, and whether it had others open meanwhile (socket_anatomy.bpf.h). */
#pragma once

#include "socket_state.bpf.h"
#include "thread_record.bpf.h"

/* Where the records of threads are. Set before loading. */
enum { THREADS_UNKNOWN, THREADS_IN_STORAGE, THREADS_IN_HASH };
const volatile __u32 threads_in = THREADS_UNKNOWN;

/*
 * Requests that threads have read. Threads share a place if their numbers are alike, and then seem to serve
 * each other's requests at the same time. Neighbours are not on one cache line.
 */
#define READER_PLACES 16384

struct reader {
	u32 begun;
	u32 ended;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, READER_PLACES);
	__type(key, u32);
	__type(value, struct reader);
} readers SEC(".maps");

static __always_inline struct reader *reader_at(u32 place)
{
	return bpf_map_lookup_elem(&readers, &place);
}

static __always_inline u32 place_of(const struct thread_waits *waits)
{
	u32 thread = waits->key >> 32;

	return (thread << 3 | (thread >> 11 & 7)) & (READER_PLACES - 1);
}

/* The open turn is over, or goes on without us. */
static __always_inline void release_reader(struct socket_state *st)
{
	struct reader *reader;

	if (threads_in == THREADS_UNKNOWN || !st->reader_waits)
		return;
	st->reader_waits = false;
	reader = reader_at(st->reader_place);
	if (reader)
		__sync_fetch_and_add(&reader->ended, 1);
}

/* A turn begins; `may_stay_open`: nothing will tell if it is given up. */
static __always_inline void note_reader(struct socket_state *st, const struct thread_waits *waits,
					bool may_stay_open)
{
	struct reader *reader;

	release_reader(st);
	st->reader_place = place_of(waits);
	reader = reader_at(st->reader_place);
	if (!reader)
		return;
	st->reader_shared = reader->begun != reader->ended;
	st->reader_begun = ++reader->begun;
	if (may_stay_open)
		__sync_fetch_and_add(&reader->ended, 1);
	else
		st->reader_waits = true;
}

static __always_inline bool was_alone(const struct socket_state *st)
{
	const struct reader *reader = reader_at(st->reader_place);

	return reader && !st->reader_shared && reader->begun == st->reader_begun;
}
