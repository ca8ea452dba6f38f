/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Servers that send unasked: a stream of changes to a replica, events to a subscriber. The client's messages
 * in between (how far it has come, that it is alive) get no reply, and the next piece of the stream looks
 * like one: a request that lasts until something happens to be sent.
 *
 * A push is a send without an open turn, some time after the send before it. After many pushes in a row the
 * rhythm of the stream distinguishes replies from pushes. Acknowledgements are short, arrive at any time
 * between two pushes, and the next push follows at any time, too. A reply is sent sooner than the next push
 * would be, or ends a silence that is too long for the stream. After some turns in a row that look like
 * acknowledgements the connection counts as a stream: from then on a send that does not promptly follow a
 * short message does not answer it.
 *
 * Requests whose replies are sent in pieces differ: the pieces are few, or the first one is sent promptly, or
 * the request follows right behind the last piece, or is longer, or is HTTP's. A busy event loop needs a
 * round for each piece, and one for the first of them: then only the number of pieces distinguishes them. Or
 * each piece fills the server's buffer. Where a reply looked like a stream all the same, those that follow it
 * on the connection do not: one turn follows the other, and nothing is sent unasked between them.
 */
#pragma once

#include "socket_beginnings.bpf.h"
#include "socket_buffers.bpf.h"
#include "socket_state.bpf.h"

/* Pieces of one reply follow each other faster, if nothing makes the server wait. */
#define PUSH_PAUSE_NS 1000000ULL
/* So many without a turn between them. */
#define PUSHES_OF_STREAM 16
/* Turns that were answered promptly, until there are so many pushes again. */
#define PUSHES_REMEMBERED 64
/* Turns of the stream's rhythm, less others. */
#define STREAMING_TURNS 4
#define STREAMING_REMEMBERED 8
/* A silence of more than four gaps is none of the stream's, from which an eighth of one is prompt. */
#define SILENCE_SHIFT 5
/* The longest message that can be an acknowledgement: shorter than requests of HTTP. */
#define ACKNOWLEDGEMENT_BYTES 64
/* The shortest buffer that is sent whenever it is full. */
#define BUFFER_LEAST 4096
#define PUSH_GAP_SHIFT 10
#define PUSH_GAP_MOST 0xffffffffULL

static __always_inline bool is_streaming(const struct socket_state *st)
{
	return st->streaming >= STREAMING_TURNS;
}

/* The stream went on so long after the send before. */
static __always_inline void note_push_gap(struct socket_state *st, u64 pause)
{
	u64 gap = pause >> PUSH_GAP_SHIFT;

	if (gap > PUSH_GAP_MOST)
		gap = PUSH_GAP_MOST;
	st->push_gap = st->push_gap ? st->push_gap - (st->push_gap >> 3) + (gap >> 3) : gap;
}

/* Something was sent unasked, so long after the send before. */
static __always_inline void note_push(struct socket_state *st, u64 pause)
{
	note_push_gap(st, pause);
	if (st->pushes < PUSHES_OF_STREAM)
		st->pushes++;
	if (st->pushes == PUSHES_OF_STREAM)
		st->may_stream = PUSHES_REMEMBERED;
}

static __always_inline void forget_stream(struct socket_state *st)
{
	st->may_stream = 0;
	st->streaming = 0;
}

/* A turn begins on what may be a stream: it is none if that is a request of HTTP. */
static __always_inline void look_for_request(struct socket_state *st)
{
	const void *buffer = st->may_stream ? first_buffer(NULL) : NULL;
	u32 head = 0;

	if (!buffer || bpf_probe_read_user(&head, sizeof(head), buffer) || !is_http_method(head))
		return;
	forget_stream(st);
}

/* Is the open turn one message, and all that was sent or read since the reply to the turn before? */
static __always_inline bool alternates_with_last(const struct socket_state *st)
{
	return !st->pushes && !st->spoken && st->turn_arrival == st->first_arrival;
}

/* The open turn is followed by a send: has that nothing to do with it? */
static __always_inline bool answers_nothing(struct socket_state *st, u64 last_send, u64 now)
{
	u64 promptly = (u64)st->push_gap << PUSH_GAP_SHIFT >> 3, waited, silence;
	bool unhurried, alternates = alternates_with_last(st);

	st->pushes = 0;
	st->spoken = false;
	if (!st->may_stream)
		return false;
	waited = elapsed(st->turn_arrival, now);
	silence = elapsed(last_send, st->first_arrival);
	unhurried = waited >= promptly && (waited > silence || silence <= promptly << SILENCE_SHIFT);
	unhurried = unhurried && st->turn_bytes <= ACKNOWLEDGEMENT_BYTES;
	if (unhurried && !alternates) {
		if (silence >= promptly && st->streaming < STREAMING_REMEMBERED)
			st->streaming++;
		return is_streaming(st);
	}
	if (!unhurried)
		st->may_stream--;
	if (st->streaming)
		st->streaming--;
	return unhurried && is_streaming(st);
}
