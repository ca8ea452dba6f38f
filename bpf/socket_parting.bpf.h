/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Messages that nothing answers. And clients that give up: within an open request they say goodbye
 * (close_notify, RFC 8446, 6.1) and close the connection. What a server sends then still answers the request.
 *
 * Under TLS 1.2 an alert shows its type. Under TLS 1.3 a message of two bytes looks alike (MQTT's PINGREQ): a
 * client that says more has not closed its side when the server sends.
 */
#pragma once

#include "socket_connections.bpf.h"
#include "socket_state.bpf.h"
#include "socket_tls.bpf.h"

/*
 * A pause that only a client makes that has said all it had to say. Shorter ones are made by requests on
 * their way, too: a lost segment of theirs comes again after 200 ms and more.
 */
#define ONE_WAY_PAUSE_NS 500000000ULL
/* After so many messages without a reply in a row the next one will have none either. */
#define ONE_WAY_RUN 3

/* Nothing will answer the open turn. */
static __always_inline void count_one_way(struct socket_state *st, struct socket_shard *shard)
{
	if (st->tls > TLS_CONNECTED || was_forgotten(st))
		return;
	add(&shard->oneway, 1);
	if (!is_counted_late(st))
		add(&shard->dismissed, 1);
}

/* The same, and the client says more after a pause. */
static __always_inline void end_one_way(struct socket_state *st, struct socket_shard *shard)
{
	count_one_way(st, shard);
	st->spoken = true;
	if (st->oneway_run < ONE_WAY_RUN)
		st->oneway_run++;
}

/* Something that came at `arrival` is read within an open request: may it be a goodbye? Its time stays. */
static __always_inline bool may_part(struct socket_state *st, u64 arrival, u64 last_read, u32 bytes)
{
	u8 kind;

	if (st->tls != TLS_CONNECTED || has_late_turn(st) || bytes > CLOSE_NOTIFY_BYTES)
		return false;
	kind = connected_turn(bytes);
	if (kind == TLS_CONNECTED)
		return false;
	st->may_be |= DOUBT_PARTING;
	if (kind == TLS_SHORT && elapsed(last_read, arrival) >= ONE_WAY_PAUSE_NS)
		st->may_be |= DOUBT_MESSAGE;
	st->late_arrival = arrival;
	return true;
}

/* Something is sent: was that a message instead, behind one that nothing answers? Then it is answered now. */
static __always_inline void answer_parting(struct socket_state *st, struct socket_shard *shard,
					   struct sock *sk)
{
	bool message = st->may_be & DOUBT_MESSAGE && !(FIELD(sk, sk_shutdown) & RCV_SHUTDOWN);

	st->may_be &= ~(DOUBT_PARTING | DOUBT_MESSAGE);
	if (!message)
		return;
	end_one_way(st, shard);
	st->first_arrival = st->late_arrival;
	st->turn_arrival = st->late_arrival;
	st->turn_read = st->late_arrival;
	st->last_read = st->late_arrival;
	st->turn_bytes = st->read_bytes;
	if (st->turn_bytes == SHORT_RECORD)
		st->turn_bytes += TLS_RECORD_HEADER;
	st->tls = TLS_SHORT;
}

/*
 * Was what came within the open turn a goodbye, or a database's end of session, which is as short, and the
 * client has closed its side behind it? Then it is no request that waits.
 */
static __always_inline bool has_only_parted(struct sock *sk, const struct tcp_sock *tp)
{
	return tp && FIELD(sk, sk_shutdown) & RCV_SHUTDOWN &&
	       (u32)(FIELD(tp, rcv_nxt) - FIELD(tp, copied_seq)) <= CLOSE_NOTIFY_BYTES + 1;
}
