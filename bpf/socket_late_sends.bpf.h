/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Sends whose hook runs when another turn has begun: another thread has read the next request, which the
 * client sent when it had the reply. The turn before that one is kept for the hook (begins_another()).
 */
#pragma once

#include "socket_connections.bpf.h"
#include "socket_first_byte.bpf.h"
#include "socket_state.bpf.h"

/*
 * Had the send begun before the open turn did? Its bytes are the last ones before the write position, unless
 * kernel TLS holds them back. Other sockets have told if something was sent in the open turn.
 */
static __always_inline bool is_late_send(const struct socket_state *st, const struct tcp_sock *tp, u32 bytes)
{
	if (!tp)
		return has_late_turn(st) && !st->first_out;
	if ((s32)(FIELD(tp, write_seq) - bytes - st->write_seq) >= 0)
		return false;
	return !has_kernel_tls(tp);
}

/* The hook of the send that has answered an earlier turn has come at last, or was kept from us. */
static __always_inline void observe_late_turn(struct socket_state *st, struct socket_shard *shard, u32 turn,
					      u64 now)
{
	u64 read = st->late_read;

	if (!read)
		return;
	st->late_read = 0;
	if (st->late_turn == turn)
		return;
	if (is_unix_stream(st))
		add(&shard->opened, 1);
	observe(&shard->queue, elapsed(st->late_arrival, read));
	observe(&shard->service, elapsed(read, now));
	observe(&shard->duration, elapsed(st->late_arrival, now));
}
