/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Within a call that sends: the first piece of a reply leaves, by a socket that tells of each piece. */
#pragma once

#include "socket_again.bpf.h"
#include "socket_connections.bpf.h"
#include "socket_first_byte.bpf.h"

static __always_inline void note_first_out(struct socket_state *st)
{
	if (st->role == TACHO_ROLE_SERVER && is_open(st) && !st->first_out)
		st->first_out = bpf_ktime_get_ns();
}

/* A piece of what a unix socket sends has reached its other end, which is told within the sender's call. */
static __always_inline void note_unix_out(struct sock *sk)
{
	struct socket_state *st;
	struct sock *sender;

	if (is_datagram(sk) || FIELD(sk, __sk_common.skc_state) == TCP_LISTEN || is_unwatched_task())
		return;
	sender = unix_peer(sk);
	st = sender ? state_of(sender) : NULL;
	if (st)
		note_first_out(st);
}

/*
 * A subflow is chosen for a piece of what a multipath socket has to send (Linux 5.13). What it had before the
 * open turn began may be left, and has its place in the stream.
 */
static __always_inline void note_mptcp_out(struct mptcp_subflow_context *subflow)
{
	struct sock *sk = FIELD(subflow, conn);
	struct socket_state *st = sk ? state_of(sk) : NULL;

	if (st && mptcp_position(sk) != st->write_seq)
		note_first_out(st);
}

TRACEPOINT_PROGRAM("tp_btf/mptcp_subflow_get_send", socket_mptcp_out, note_mptcp_out(subflow),
		   struct mptcp_subflow_context *subflow)
