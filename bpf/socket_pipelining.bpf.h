/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Does one read bring several requests? Then turns under-count them, and the target is multiplexed. Does a
 * client begin another call within one? Then its calls are multiplexed.
 *
 * The beginnings of requests are compared (socket_beginnings.bpf.h). Under TLS the records
 * are alike (socket_records.bpf.h). Only yes or no leaves the program. The preface of HTTP/2 (RFC 9113, 3.4)
 * on the first turn decides at once.
 *
 * Some turns of a target are examined, each with the same probability, whether it is a connection's first or
 * its last: all turns of a target with few, some hundreds a second of a target with many.
 *
 * A client that sends call after call sends each on its own as often as several at once. So the beginning of
 * an examined call is kept, and compared with the beginning of what is sent before the answer arrives.
 */
#pragma once

#include "socket_beginnings.bpf.h"
#include "socket_brokers.bpf.h"
#include "socket_handshake.bpf.h"
#include "socket_http2.bpf.h"
#include "socket_records.bpf.h"

/* Whether the turn that is open, or ends, is the second one of its connection, or one in 256. */
static __always_inline bool is_sampled(const struct socket_state *st)
{
	return st->sampler == 2;
}

/* How often a target's turns are looked at on a CPU: less often if it was so soon so many times, ... */
#define LOOK_PAUSE_NS 2000000ULL
#define LOOKS_IN_A_ROW 32
/* ... but after so long in any case, and one of so many as a mean at the least. */
#define LOOK_PAUSE_MOST_NS 1000000000ULL
#define LOOK_MASK_MOST 1023

/*
 * Is the turn that begins one that is looked at? A random number of turns is left out after each that is, the
 * more of them the faster they come: a clock alone would find what comes after a pause more often than the
 * rest, and that is how connections begin.
 */
static __always_inline bool is_looked_at(struct socket_shard *shard, u64 now)
{
	u64 pause = elapsed(shard->looked, now);
	u32 mask = shard->look_mask;
	u32 row = shard->looks_in_a_row;

	if (pause >= LOOK_PAUSE_MOST_NS) {
		mask = 0;
		row = 0;
	} else if (shard->look_in) {
		shard->look_in--;
		return false;
	} else if (pause > 4 * LOOK_PAUSE_NS) {
		mask >>= 1;
		row = 0;
	} else if (pause < LOOK_PAUSE_NS && ++row == LOOKS_IN_A_ROW) {
		mask = (mask << 1 | 1) & LOOK_MASK_MOST;
		row = 0;
	}
	shard->looked = now;
	shard->look_mask = mask;
	shard->looks_in_a_row = row;
	shard->look_in = mask ? bpf_get_prandom_u32() & mask : 0;
	return true;
}

/* A turn begins with a read of so many bytes. */
static __always_inline void sample_turn(struct socket_state *st, struct socket_shard *shard, u64 now,
					u32 bytes)
{
	const union record_watch watch = {.all = st->records};
	const void *buffer;
	u32 head = 0;

	st->head = 0;
	st->noted = 0;
	if (!st->sampler++) {
		/* Where HTTP/2 is followed, its preface has just been looked for. */
		buffer = st->turns <= 1 && st->http2 == HTTP2_OFF ? first_buffer(NULL) : NULL;
		if (buffer && !bpf_probe_read_user(&head, sizeof(head), buffer))
			st->many = head == HTTP2_PREFACE;
	}
	if (watch.flags & ~WATCH_PROOF || in_handshake(st) || !is_looked_at(shard, now))
		return;
	if (speaks_tls(st)) {
		watch_records(st, WATCH_REQUESTS | watch.flags, 0);
		return;
	}
	/* Several packets of a broker's client may have no answer at all. */
	if (speaks_to_broker(st) || !first_buffer(NULL))
		return;
	st->noted = NOTED_LOOK;
	if (begins_again(bytes))
		st->noted = NOTED_LOOK | NOTED_SEVERAL;
	else
		note_head(st, bytes);
}

/*
 * A connection of which two such turns are found in so many carries several requests at a time, whatever its
 * other turns look like: where each reply is followed by the next request, turns seem to alternate. So does
 * one that has had a single such turn, if something short is sent unasked later: the reply that was owed.
 */
#define CROWDED_TURNS 16
#define CROWDED_REMEMBERED 255

/*
 * More is read in an open turn that is examined: is it another request? The server reads all that comes, and
 * answers later. `alone`: it had to be waited for.
 */
static __always_inline void compare_read(struct socket_state *st, u32 bytes, bool alone)
{
	if (!st->head || !(is_whole_message(st->head, st->head_length, st->turn_bytes) ||
			   begins_alike(st->head, st->head_length, bytes, alone)))
		return;
	st->head = 0;
	st->noted |= NOTED_SEVERAL | NOTED_CROWD;
}

/* The open turn is answered, or is being answered. @return whether it was looked at */
static __always_inline bool count_look(struct socket_state *st, struct socket_shard *shard)
{
	if (!(st->noted & NOTED_LOOK))
		return false;
	add(&shard->sampled_turns, 1);
	add(&shard->repeated_turns, st->noted / NOTED_SEVERAL & 1);
	return true;
}

/* The open turn is answered. */
static __always_inline void count_looked(struct socket_state *st, struct socket_shard *shard)
{
	if (!count_look(st, shard))
		return;
	if (st->crowded)
		st->crowded--;
	if (!(st->noted & NOTED_CROWD))
		return;
	if (st->crowded > CROWDED_REMEMBERED - CROWDED_TURNS)
		st->many = true;
	st->crowded = CROWDED_REMEMBERED;
}

/* A turn is answered of which the records were followed, as far as that was possible. */
static __always_inline void count_records(struct socket_state *st, struct socket_shard *shard)
{
	const union record_watch watch = {.all = st->records};

	st->records = 0;
	if (!(watch.flags & WATCH_REQUESTS))
		return;
	if (watch.run >= RECORDS_OF_SEVERAL)
		add(&shard->repeated_turns, 1);
	else if (!records_were_followed(&watch))
		return;
	add(&shard->sampled_turns, 1);
}

/* A client sends the first piece of a call. */
static __always_inline void sample_call(struct socket_state *st, u32 bytes)
{
	st->head = 0;
	st->overlap = false;
	switch (st->sampler++) {
	case 0:
		if (head_of_call(bytes) == HTTP2_PREFACE)
			st->many = true;
		break;
	case 1:
		note_head(st, bytes);
		if (st->head)
			st->overlap = begins_again(bytes);
		break;
	}
}

/* A client's answer may sit unread for so long before the hook of the send that it answers has run. */
#define LATE_HOOK_NS 1000000ULL

/*
 * A client sends in the midst of a call. It begins another one if an answer waits unread meanwhile, or if it
 * is one of those that are looked at and this begins like it.
 */
static __always_inline void sample_open_call(struct socket_state *st, u64 now, u32 bytes)
{
	if (st->overlap)
		return;
	if (st->head)
		st->overlap = is_whole_message(st->head, st->head_length, st->head_length) ||
			      begins_alike(st->head, st->head_length, bytes, true);
	if (st->sampler > 2 && st->arrival && elapsed(st->arrival, now) > LATE_HOOK_NS)
		st->overlap = true;
}

/* Data came to a client. What the peer has not got yet it cannot answer: then this answers an earlier call.
 */
static __always_inline bool answers_earlier_call(const struct socket_state *st, const struct tcp_sock *tp)
{
	/*
	 * A FIN takes a place, too, as does a goodbye, which asks nothing. In a connection's first calls a
	 * server's session tickets come unasked.
	 */
	return tp && st->call_open && st->sampler > 2 &&
	       (s32)(FIELD(tp, write_seq) - FIELD(tp, snd_una)) > 1 && !(st->may_be & DOUBT_PARTING);
}

/*
 * A client begins a call. Was more than the end of the stream unread when it went out? Then an earlier call
 * was not over. What has come since does not count: an answer may overtake the hook of the send.
 */
static __always_inline bool leaves_answer_unread(const struct socket_state *st, const struct tcp_sock *tp)
{
	return tp && st->sampler > 2 && (s32)(FIELD(tp, rcv_wup) - FIELD(tp, copied_seq)) > 1 &&
	       FIELD(tp, snd_nxt) == FIELD(tp, write_seq);
}

static __always_inline void count_multiplexed_call(struct socket_state *st, struct socket_shard *shard)
{
	if (st->head) {
		add(&shard->sampled_calls, 1);
		if (st->overlap)
			add(&shard->repeated_calls, 1);
		st->head = 0;
	}
	if (st->overlap || st->many)
		add(&shard->calls_overlapped, 1);
	st->overlap = false;
}
