/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * The time at which a request arrived: the arrival of the last data that the server had to wait for, that is,
 * of data that arrived when all before it had been read.
 *
 * TCP knows this by itself, under the lock of the socket: the end of the received data (rcv_nxt) and the end
 * of the read data (copied_seq) are positions in one stream. They also show what a hook has missed: data that
 * is read and was never announced arrived just now, not with the data before it. Sockets without positions
 * have a flag instead, which the hook of the read sets a moment after the read.
 */
#pragma once

#include "socket_state.bpf.h"

/* A connection begins, or is found: what has come so far was not announced to us. */
static __always_inline void begin_arrivals(struct socket_state *st, const struct tcp_sock *tp)
{
	st->arrival = 0;
	if (!tp)
		return;
	st->ready_seq = FIELD(tp, rcv_nxt);
	st->arrival_seq = FIELD(tp, copied_seq);
	st->read_seq = FIELD(tp, copied_seq);
}

/* A TCP socket has been put into a sockmap: what was kept of its positions says nothing any more. */
static __always_inline void forget_positions(struct socket_state *st, struct sock *sk)
{
	if (st->past_tcp || !is_tcp(sk))
		return;
	st->past_tcp = true;
	st->arrival = 0;
	st->first_out = 0;
	st->left = false;
}

static __always_inline void data_arrived(struct socket_state *st, struct sock *sk, const struct tcp_sock *tp,
					 u64 now)
{
	if (!tp)
		forget_positions(st, sk);
	if (tp && st->role == TACHO_ROLE_SERVER) {
		u32 come = FIELD(tp, rcv_nxt);
		u32 read = FIELD(tp, copied_seq);

		if (come != st->ready_seq) {
			if ((s32)(read - st->ready_seq) >= 0) {
				st->arrival = now;
				st->arrival_seq = read;
			} else if (st->arrival_seq == st->ready_seq) {
				/* What it joins was waited for, and has been read in part. */
				st->arrival_seq = come;
			}
		}
		st->ready_seq = come;
	} else if (!st->arrival && !st->left) {
		st->arrival = now;
	}
	st->last_ready = now;
}

/* Data that no one has read yet, on a socket without positions. */
static __always_inline u32 unread_buffers(struct sock *sk)
{
	u32 unread = FIELD(sk, sk_receive_queue.qlen);

	if (bpf_core_field_exists(struct mptcp_sock___own_queue, receive_queue) && is_mptcp(sk))
		unread += BPF_CORE_READ((struct mptcp_sock___own_queue *)sk, receive_queue.qlen);
	return unread;
}

/* When data came that has just been read and that the server had to wait for; 0: it was there before. */
static __always_inline u64 awaited_arrival(struct socket_state *st, struct sock *sk,
					   const struct tcp_sock *tp, u64 now)
{
	u64 arrival;
	bool left;

	if (!tp)
		forget_positions(st, sk);
	arrival = st->arrival;
	left = st->left;
	if (tp) {
		u32 read = FIELD(tp, copied_seq);

		if (!arrival || (s32)(read - st->ready_seq) > 0)
			return now;
		if ((s32)(read - st->arrival_seq) <= 0)
			return 0;
		/* All that has come by now was waited for once, whoever reads the rest of it. */
		st->arrival_seq = st->ready_seq;
		return arrival;
	}
	st->arrival = 0;
	st->left = unread_buffers(sk);
	if (arrival)
		return arrival;
	return left ? 0 : now;
}
