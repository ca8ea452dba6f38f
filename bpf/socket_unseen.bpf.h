/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Data that was read although no hook has seen a receive: by splice to a pipe, where functions of the kernel
 * may not be hooked (a Go program copies so from one connection to another), by TCP_ZEROCOPY_RECEIVE, or
 * where a hook was missed. TCP's position in the stream (copied_seq) shows it at the next send. That send
 * answers a turn then, or begins another call. When the data was read is not known: its arrival takes the
 * place. Nor are its bytes, so a TLS handshake that is spliced is a request like others.
 */
#pragma once

#include "socket_calls.bpf.h"
#include "socket_turns.bpf.h"

/* How much was read that no hook has seen. The end of the stream has a place, too. */
static __always_inline u32 unseen_bytes(struct socket_state *st, struct sock *sk, const struct tcp_sock *tp)
{
	u32 read, beyond;

	if (!tp || st->past_tcp)
		return 0;
	read = FIELD(tp, copied_seq);
	beyond = read - st->read_seq;
	/* An urgent byte (RFC 6093) that nobody asked for is skipped, and has a place. */
	if (FIELD(tp, urg_seq) - st->read_seq < beyond && !--beyond)
		st->read_seq = read;
	if (!beyond || (beyond == 1 && FIELD(sk, sk_shutdown) & RCV_SHUTDOWN))
		return 0;
	/* A library in the kernel (TLS) takes data out of the stream before it is read. */
	return has_kernel_tls(tp) ? 0 : beyond;
}

/*
 * A unix socket has no positions. But what was told to have come to it, and is gone, was read. That only
 * tells where no hook has ever seen a receive: elsewhere the hook of one may be on its way.
 */
static __always_inline bool was_read_from_unix(const struct socket_state *st, struct sock *sk)
{
	return is_unix_stream(st) && !st->read_seq && st->arrival && !FIELD(sk, sk_receive_queue.qlen);
}

/*
 * A hook sees a receive of so many bytes.
 * @return whether a send has overtaken it: what was read, or its beginning, is part of a turn already
 */
static __always_inline bool was_overtaken(struct socket_state *st, const struct tcp_sock *tp, u32 bytes)
{
	u32 read;
	bool overtaken;

	if (!tp) {
		if (is_unix_stream(st) && (st->role == TACHO_ROLE_SERVER || st->role == TACHO_ROLE_CLIENT))
			st->read_seq = 1;
		return false;
	}
	read = FIELD(tp, copied_seq);
	overtaken = st->overtaken && read - st->read_seq < bytes;
	st->read_seq = read;
	st->overtaken = false;
	return overtaken;
}

static __always_inline void note_position(struct socket_state *st, const struct tcp_sock *tp)
{
	if (!tp)
		return;
	st->read_seq = FIELD(tp, copied_seq);
	st->overtaken = true;
}

/* What was read unseen belongs to the turn that is open, or to the call that has been answered. */
static __always_inline void skip_unseen(struct socket_state *st, const struct tcp_sock *tp)
{
	if (tp)
		st->read_seq = FIELD(tp, copied_seq);
}

/* A send of so many bytes has just been made: opens the turn that it answers, if none is open. */
static __always_inline void open_unseen_turn(struct socket_state *st, struct socket_shard *shard,
					     struct sock *sk, const struct tcp_sock *tp, u64 now, u32 bytes)
{
	u64 arrival;
	u32 read;

	if (is_open(st)) {
		skip_unseen(st, tp);
		return;
	}
	read = tp ? unseen_bytes(st, sk, tp) : was_read_from_unix(st, sk);
	if (!read)
		return;
	note_position(st, tp);
	arrival = awaited_arrival(st, sk, tp, now);
	if (!arrival)
		arrival = st->last_ready;
	if (is_held(st))
		observe_held_turn(st, shard, st->first_reply);
	finish_reply(st, shard, false);
	st->first_arrival = arrival;
	st->turn_arrival = arrival;
	st->turn_read = arrival;
	st->last_read = arrival;
	st->turn_bytes = read;
	st->read_bytes = read;
	await_first_byte(st, sk, tp);
	st->write_seq -= bytes;
	if (st->tls != TLS_NONE)
		st->tls = TLS_CONNECTED;
	st->counted_late = false;
	st->may_be = 0;
	st->established = 0;
	st->records = 0;
	st->head = 0;
	st->noted = 0;
	st->reader = 0;
	st->overlap = false;
	st->turn++;
	if (!is_counted_late(st))
		add(&shard->opened, 1);
}

/* What answers the open call was read; `bytes` have been sent since. */
static __always_inline void end_unseen_call(struct socket_state *st, struct sock *sk,
					    const struct tcp_sock *tp, u32 bytes)
{
	struct dependency *dependency;
	u64 back = st->arrival ? st->arrival : st->last_ready;
	u32 read;

	if (!st->call_open) {
		skip_unseen(st, tp);
		return;
	}
	read = tp ? unseen_bytes(st, sk, tp) : was_read_from_unix(st, sk);
	if (!read)
		return;
	note_position(st, tp);
	st->arrival = 0;
	st->call_open = false;
	if (tp)
		st->write_seq = FIELD(tp, write_seq) - bytes;
	/* A goodbye that answers one is as short. */
	if (st->tls > TLS_CONNECTED || (st->may_be & DOUBT_PARTING && read <= CLOSE_NOTIFY_BYTES)) {
		st->tls = TLS_CONNECTED;
		return;
	}
	dependency = get_dependency(&st->target, st->peer);
	if (dependency)
		observe_atomic(&dependency->duration, elapsed(st->last_send, back));
}

/*
 * A client closes its connection: nothing more is sent that would show it. What a process has read that has
 * left the target does not count.
 */
static __always_inline void end_last_call(struct socket_state *st, struct sock *sk)
{
	if (st->role == TACHO_ROLE_CLIENT && !was_empty_since(&st->target, st->generation) &&
	    st->owner == (st->owned_by_process ? current_tgid() : current_cgroup()))
		end_unseen_call(st, sk, tcp_sock_of(sk), 0);
}
