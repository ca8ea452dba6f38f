/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Where a reply ends: what its server sends later, unasked, is none of it. How long its client keeps the
 * server waiting is.
 */
#pragma once

#include "socket_connections.bpf.h"
#include "socket_first_byte.bpf.h"
#include "socket_pipelining.bpf.h"
#include "socket_state.bpf.h"
#include "socket_streams.bpf.h"
#include "socket_tls.bpf.h"

/*
 * Something was sent on a unix socket: is there room for more? Nobody can write into one that has filled a
 * quarter of its buffer (unix_writable). @return whether there was room before
 */
static __always_inline bool note_room(struct socket_state *st, struct sock *sk, u32 bytes)
{
	u32 quarter = (u32)FIELD(sk, sk_sndbuf) / 4;
	bool full = (u32)FIELD(sk, sk_wmem_alloc.refs.counter) > quarter;
	u8 noted = st->noted;

	st->noted = full ? noted | NOTED_FULL : noted & ~NOTED_FULL;
	return !(noted & NOTED_FULL) && bytes <= quarter;
}

/* A server that was silent for so long, though it could send, had said all that it had to reply. */
#define REPLY_PAUSE_NS 5000000000ULL

/*
 * Was a server silent for longer than that since its reply began, and did not wait for its client? TCP, at
 * this address, knows for how long it had nothing to send (busy_time()). A global function, which the
 * verifier works through once a program.
 * @param busy its clock when the request was read
 */
__noinline u32 was_silent(u64 socket, u64 since_reply, u32 busy)
{
	const struct tcp_sock *tp = (const struct tcp_sock *)socket;
	u64 waited = (u64)(subflow_busy_so_far(tp) - busy) * jiffy_ns;

	return elapsed(waited, since_reply) > REPLY_PAUSE_NS;
}

/*
 * More is sent, and nothing was read since the reply began: is it more of that? Not what follows a long
 * silence (an event, a sign of life, the end of a session; MPTCP does not tell why it was silent), nor what
 * is as short as a goodbye, unless still more follows that.
 * @param before length of the send before
 */
static __always_inline void continue_reply(struct socket_state *st, struct socket_shard *shard,
					   struct sock *sk, const struct tcp_sock *tp, u64 last_send, u64 now,
					   u32 before, u32 bytes)
{
	bool had_room = tp || (is_unix_stream(st) && note_room(st, sk, bytes));
	u64 pause = elapsed(last_send, now);

	if (!last_send)
		return;
	if (pause > PUSH_PAUSE_NS && (bytes < BUFFER_LEAST || bytes != before))
		note_push(st, pause);
	if (pause > PUSH_PAUSE_NS && st->crowded && !st->may_stream && bytes < BUFFER_LEAST &&
	    before < BUFFER_LEAST)
		st->many = true;
	if (st->tls == TLS_CONNECTED && sends_goodbye(bytes)) {
		st->last_send = last_send;
	} else if (pause > REPLY_PAUSE_NS && st->tls <= TLS_CONNECTED && had_room &&
		   (!tp || was_silent(as_number(sk), elapsed(st->first_reply, now), st->busy))) {
		st->last_send = last_send;
		finish_reply(st, shard, false);
		st->last_send = now;
	}
}
