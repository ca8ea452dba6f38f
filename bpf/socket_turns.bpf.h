/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Turns on server sockets, calls on client sockets, and the life of connections. */
#pragma once

#include "socket_handshake.bpf.h"
#include "socket_http2.bpf.h"
#include "socket_peers.bpf.h"
#include "socket_pipelining.bpf.h"
#include "socket_state.bpf.h"

static __always_inline u32 role_index(const struct socket_state *st)
{
	return st->role == TACHO_ROLE_CLIENT;
}

static __always_inline bool has_connections(const struct socket_state *st)
{
	return !st->close_unseen && (st->role == TACHO_ROLE_SERVER || st->role == TACHO_ROLE_CLIENT);
}

/* Turns that are counted only when they are answered, since they may turn out to be none or never end. */
static __always_inline bool is_counted_late(const struct socket_state *st)
{
	return st->close_unseen || in_handshake(st);
}

static __always_inline void count_opened(struct socket_state *st)
{
	struct socket_shard *shared;

	if (st->counted || !has_connections(st))
		return;
	shared = get_shared_shard(&st->target);
	if (!shared)
		return;
	st->counted = true;
	add_atomic(&shared->connections_opened[role_index(st)], 1);
}

static __always_inline void finish_reply(struct socket_state *st, struct socket_shard *shard, bool atomic)
{
	u64 first = st->first_reply;

	if (!first)
		return;
	st->first_reply = 0;
	if (atomic)
		observe_atomic(&shard->reply, elapsed(first, st->last_send));
	else
		observe(&shard->reply, elapsed(first, st->last_send));
}

/* The connection is over, or is handed to another target. */
static __always_inline void count_closed(struct socket_state *st, struct sock *sk)
{
	struct socket_shard *shared = get_shared_shard(&st->target);

	if (shared) {
		finish_reply(st, shared, true);
		if (st->turn_read && !is_counted_late(st)) {
			if (is_close_notify(st))
				add_atomic(&shared->dismissed, 1);
			else
				add_atomic(&shared->unanswered, 1);
		}
		http2_closed(st, sk, shared);
		if (st->counted)
			add_atomic(&shared->connections_closed[role_index(st)], 1);
	}
	st->first_reply = 0;
	st->turn_read = 0;
	st->counted = false;
}

static __always_inline void open_turn(struct socket_state *st, struct socket_shard *shard,
				      const struct tcp_sock *tp, u64 arrival, u64 now, u32 bytes)
{
	finish_reply(st, shard, false);
	/* Data that came together with the request before was timed when that was read. */
	if (!arrival)
		arrival = st->last_ready ? st->last_ready : now;
	st->turn_arrival = arrival;
	st->turn_read = now;
	st->turn_bytes = 0;
	st->write_seq = tp ? FIELD(tp, write_seq) : 0;
	begin_handshake_turn(st);
	sample_turn(st, shard, bytes);
	if (!is_counted_late(st))
		observe(&shard->queue, elapsed(arrival, now));
	if (st->established) {
		observe(&shard->accept_wait, elapsed(st->established, now));
		st->established = 0;
	}
}

static __always_inline void server_received(struct socket_state *st, struct socket_shard *shard,
					    const struct tcp_sock *tp, u64 now, u32 bytes)
{
	u64 arrival = st->arrival;

	st->arrival = 0;
	st->last_read = now;
	st->overlap = false;
	if (!st->turn_read)
		open_turn(st, shard, tp, arrival, now, bytes);
	else
		continue_handshake_turn(st);
	st->turn_bytes += bytes;
}

static __always_inline void server_sent(struct socket_state *st, struct socket_shard *shard, u64 now)
{
	u64 read = st->turn_read;

	st->last_send = now;
	if (!read)
		return;
	st->turn_read = 0;
	if (is_counted_late(st)) {
		if (in_handshake(st) && end_handshake_turn(st)) {
			add(&shard->handshakes, 1);
			return;
		}
		observe(&shard->queue, elapsed(st->turn_arrival, read));
	}
	st->first_reply = now;
	observe(&shard->service, elapsed(st->last_read, now));
	observe(&shard->duration, elapsed(st->turn_arrival, now));
	if (st->overlap || st->many) {
		add(&shard->overlapped_turns, 1);
		st->overlap = false;
	}
}

static __always_inline void client_sent(struct socket_state *st, const struct tcp_sock *tp, u64 now)
{
	st->last_send = now;
	/* Another thread may have read the answer before this hook of the send has run. */
	if (!tp || FIELD(tp, write_seq) != st->write_seq)
		st->call_open = true;
}

static __always_inline void client_received(struct socket_state *st, const struct tcp_sock *tp, u64 now)
{
	u64 back = st->arrival ? st->arrival : now;
	struct dependency *dependency;

	st->arrival = 0;
	if (!st->call_open && (!tp || FIELD(tp, write_seq) == st->write_seq))
		return;
	st->call_open = false;
	if (tp)
		st->write_seq = FIELD(tp, write_seq);
	if (tp && answers_handshake(st))
		return;
	dependency = get_dependency(&st->target, st->peer);
	if (dependency)
		observe_atomic(&dependency->duration, elapsed(st->last_send, back));
}
