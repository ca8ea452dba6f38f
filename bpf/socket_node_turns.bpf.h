/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Requests of the node itself that a target leaves out: turns like all others, without their times. */
#pragma once

#include "socket_calls.bpf.h"
#include "socket_node.bpf.h"
#include "socket_turns.bpf.h"

static __always_inline void node_request_read(struct socket_state *st, struct sock *sk, u32 bytes)
{
	if (is_open(st)) {
		continue_handshake_turn(st, bytes);
	} else if (can_answer(sk)) {
		begin_handshake_turn(st, tcp_sock_of(sk), bytes);
		st->turn_bytes = 0;
		st->turn++;
	}
	st->turn_bytes += bytes;
}

static __always_inline void node_request_answered(struct socket_state *st, struct socket_shard *shard,
						  u32 bytes)
{
	if (!is_open(st))
		return;
	st->ended = st->turn;
	if (!is_counted_late(st) || end_special_turn(st, bytes))
		add(&shard->node_requests[0], 1);
}

static __always_inline void node_operation(struct socket_state *st, struct socket_shard *shard,
					   struct sock *sk, u32 bytes, u32 direction)
{
	if (st->role == TACHO_ROLE_NODE_SERVER) {
		if (direction == TACHO_RECEIVE)
			node_request_read(st, sk, bytes);
		else
			node_request_answered(st, shard, bytes);
	} else if (direction == TACHO_SEND) {
		st->call_open = true;
	} else if (st->call_open) {
		st->call_open = false;
		if (!answers_handshake(st, tcp_sock_of(sk)))
			add(&shard->node_requests[1], 1);
	}
}
