/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Turns of some connections only, where a target costs too much for those of all (TACHO_SHED_SOCKETS).
 *
 * Of a server's connections one in TACHO_CHOSEN_CONNECTIONS is chosen, in the order in which they are used
 * for the first time then, and stays so. The others are put aside: their operations are counted and nothing
 * else is done. User space multiplies what was counted of turns by the share of the operations on connections
 * that were not aside (exporter/probes/sampling.h). Calls, datagrams and the node's own requests are followed
 * on all.
 *
 * A connection goes aside with the first read of a request, when nothing is open on it, and comes back with
 * its first operation behind the end of shedding. What happens until then is not known; so it begins anew, as
 * if it was just found.
 */
#pragma once

#include "lib/own_time.bpf.h"
#include "socket_arrival.bpf.h"
#include "socket_connections.bpf.h"
#include "socket_http2_state.bpf.h"
#include "socket_moments.bpf.h"
#include "socket_state.bpf.h"
#include "socket_tls.bpf.h"

/*
 * What is open has to be seen through. Whether a connection speaks HTTP/2 would not be known later: its first
 * read is looked at.
 */
static __always_inline bool may_go_aside(const struct socket_state *st)
{
	return !is_open(st) && st->tls <= TLS_CONNECTED && !st->late_read &&
	       (st->http2 == HTTP2_OFF || st->http2 > HTTP2_AUTO);
}

/* Choices that are told apart: one is forgotten until its number comes again. */
#define CHOICES 127

static __always_inline bool is_chosen(struct socket_state *st, struct socket_chains *chains)
{
	u8 number = 1 + chains->choice % CHOICES;

	if (st->choice >> 1 != number)
		st->choice =
		    number << 1 | !(fetch_add_u32(&chains->connections, 1) % TACHO_CHOSEN_CONNECTIONS);
	return st->choice & 1;
}

static __always_inline void come_back(struct socket_state *st, const struct tcp_sock *tp)
{
	st->aside = false;
	st->left = false;
	st->overlap = false;
	st->overtaken = false;
	st->preface = 0;
	st->records = 0;
	st->head = 0;
	begin_arrivals(st, tp);
	/* A hook has seen a receive: it was put aside by one. */
	if (!tp)
		st->read_seq = 1;
}

/*
 * An operation on a connection that is aside. The cheapest that there is: no clock is read, and nothing is
 * written that other CPUs write. So the count decides which one is timed: the multiplier (2^64 by the golden
 * ratio) spreads these evenly.
 */
static __always_inline void count_aside(struct socket_shard *shard, u32 direction, u32 bytes)
{
	u64 seed = shard->aside * 0x9e3779b97f4a7c15ULL >> 32;
	u64 begun = begin_own_time(seed);

	add(&shard->aside, 1);
	count_operation(&shard->moments[direction], bytes);
	end_own_time(&shard->own_ns, seed, begun);
}

/*
 * An operation of a target while some target does without something, or the first one behind that.
 * @return whether it has been counted and nothing else is to be done
 */
static __always_inline bool is_put_aside(struct socket_state *st, struct sock *sk,
					 const struct target_rules *rules, struct socket_chains *chains,
					 struct socket_shard *shard, u32 direction, u32 bytes)
{
	st->shed = shed_level(rules, &st->target);
	if (st->shed < TACHO_SHED_SOCKETS || st->role != TACHO_ROLE_SERVER) {
		if (st->aside)
			come_back(st, tcp_sock_of(sk));
		return false;
	}
	if (is_chosen(st, chains) || (!st->aside && (direction != TACHO_RECEIVE || !may_go_aside(st)))) {
		if (st->aside)
			come_back(st, tcp_sock_of(sk));
		add(&shard->chosen, 1);
		return false;
	}
	if (!st->aside) {
		st->aside = true;
		finish_reply(st, shard, false);
		if (st->established)
			observe(&shard->accept_wait, elapsed(st->established, bpf_ktime_get_ns()));
		st->established = 0;
	}
	count_aside(shard, direction, bytes);
	return true;
}
