/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Servers that send unasked: a stream of changes to a replica, events to a subscriber. What the client says
 * in between (how far it has come, that it is alive) gets no reply, and the next piece of the stream seems to
 * be one: a request whose duration is that until something happens to be sent.
 *
 * A push is a send without an open turn, some time after the send before it. After many pushes in a row
 * the stream's own rhythm tells replies from pushes: messages of acknowledgement are short, come at any time
 * between two pushes, and what follows them comes at any time, too. A reply comes sooner than the stream
 * would go on by itself. Some such turns in a row, and the connection streams: from then on what does not
 * answer a short message promptly answers nothing.
 *
 * Requests whose replies come in pieces are none of that: the pieces are few, or the first one comes
 * promptly, or the request right behind the last piece, or it is longer, or it is HTTP's. A busy event loop
 * needs a round for each piece, and one for the first of them: then nothing but their number tells.
 */
#pragma once

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
/* The longest message that can be an acknowledgement: shorter than requests of HTTP. */
#define ACKNOWLEDGEMENT_BYTES 64
#define PUSH_GAP_SHIFT 10
#define PUSH_GAP_MOST 0xffffffffULL

static __always_inline bool is_streaming(const struct socket_state *st)
{
	return st->streaming >= STREAMING_TURNS;
}

/* Something was sent unasked, so long after the send before. */
static __always_inline void note_push(struct socket_state *st, u64 pause)
{
	u64 gap = pause >> PUSH_GAP_SHIFT;

	if (gap > PUSH_GAP_MOST)
		gap = PUSH_GAP_MOST;
	st->push_gap = st->push_gap ? st->push_gap - (st->push_gap >> 3) + (gap >> 3) : gap;
	if (st->pushes < PUSHES_OF_STREAM)
		st->pushes++;
	if (st->pushes == PUSHES_OF_STREAM)
		st->may_stream = PUSHES_REMEMBERED;
}

/* The methods of HTTP, by their first four bytes: each has a reply (RFC 9110, 9.1). */
static __always_inline bool is_http_method(u32 head)
{
	switch (head) {
	case 0x20544547: /* "GET " */
	case 0x44414548: /* HEAD */
	case 0x54534f50: /* POST */
	case 0x20545550: /* "PUT " */
	case 0x454c4544: /* DELETE */
	case 0x4954504f: /* OPTIONS */
	case 0x43544150: /* PATCH */
		return true;
	}
	return false;
}

/* A turn begins on what may be a stream: it is none if that is a request of HTTP. */
static __always_inline void look_for_request(struct socket_state *st)
{
	const void *buffer = st->may_stream ? first_buffer(NULL) : NULL;
	u32 head = 0;

	if (!buffer || bpf_probe_read_user(&head, sizeof(head), buffer) || !is_http_method(head))
		return;
	st->may_stream = 0;
	st->streaming = 0;
}

/* The open turn is followed by a send: has that nothing to do with it? */
static __always_inline bool answers_nothing(struct socket_state *st, u64 last_send, u64 now)
{
	u64 promptly = (u64)st->push_gap << PUSH_GAP_SHIFT >> 3;
	bool unhurried;

	st->pushes = 0;
	if (!st->may_stream)
		return false;
	unhurried = elapsed(st->turn_arrival, now) >= promptly;
	if (unhurried && st->turn_bytes <= ACKNOWLEDGEMENT_BYTES) {
		if (elapsed(last_send, st->first_arrival) >= promptly && st->streaming < STREAMING_REMEMBERED)
			st->streaming++;
		return is_streaming(st);
	}
	st->may_stream--;
	if (st->streaming)
		st->streaming--;
	return false;
}
