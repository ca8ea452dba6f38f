/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Servers that send unasked: a stream of changes to a replica, events to a subscriber. What the client says
 * in between (how far it has come, that it is alive) gets no reply, and the next piece of the stream seems to
 * be one: a request whose duration is that until something happens to be sent.
 *
 * A push is a send without an open turn, some time after the send before it. On a connection with more pushes
 * than turns the stream's own rhythm tells replies from pushes: messages of acknowledgement are short, come
 * at any time between two pushes, and what follows them comes at any time, too. A reply comes sooner than the
 * stream would go on by itself. Some such turns in a row, and the connection streams: from then on what does
 * not answer a short message promptly answers nothing.
 *
 * Requests whose replies come in pieces are none of that: the first piece comes promptly, or the request
 * right behind the last piece, or it is longer.
 */
#pragma once

#include "socket_state.bpf.h"

/* Pieces of one reply follow each other faster, if nothing makes the server wait. */
#define PUSH_PAUSE_NS 1000000ULL
/* So many more than turns. */
#define PUSHES_OF_STREAM 16
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
	st->push_gap = st->pushes ? st->push_gap - (st->push_gap >> 3) + (gap >> 3) : gap;
	if (st->pushes < PUSHES_REMEMBERED)
		st->pushes++;
}

/* The open turn is followed by a send: has that nothing to do with it? */
static __always_inline bool answers_nothing(struct socket_state *st, u64 last_send, u64 now)
{
	u64 promptly = (u64)st->push_gap << PUSH_GAP_SHIFT >> 3;
	bool unhurried;

	if (!st->pushes)
		return false;
	st->pushes--;
	if (st->pushes < PUSHES_OF_STREAM)
		return false;
	unhurried = elapsed(st->turn_arrival, now) >= promptly;
	if (unhurried && st->turn_bytes <= ACKNOWLEDGEMENT_BYTES) {
		if (elapsed(last_send, st->first_arrival) >= promptly && st->streaming < STREAMING_REMEMBERED)
			st->streaming++;
		return is_streaming(st);
	}
	if (st->streaming)
		st->streaming--;
	return false;
}
