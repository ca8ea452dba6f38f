/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Messages that nothing answers. And clients that give up: within an open request they say goodbye
 * (close_notify, RFC 8446, 6.1) and close the connection. What a server sends then still answers the request.
 *
 * Under TLS 1.2 an alert shows its type. Under TLS 1.3 a message of two bytes looks alike (MQTT's PINGREQ):
 * its answer is as short, and the client has not closed its side by then.
 */
#pragma once

#include "socket_connections.bpf.h"
#include "socket_state.bpf.h"
#include "socket_tickets.bpf.h"
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

/*
 * The open turn is followed by what may be a goodbye. It is no longer in flight, and got no reply if the
 * server ends the connection now, or it has ended: a client that says goodbye may reset what still comes.
 */
static __always_inline void hold_last_turn(struct socket_state *st, struct socket_shard *shard, u64 first)
{
	bool late = is_counted_late(st);

	if (!st->counted) {
		if (!late)
			add(&shard->unanswered, 1);
		return;
	}
	if (!late)
		add(&shard->dismissed, 1);
	st->tls = late ? TLS_HELD : TLS_LAST;
	st->first_reply = first;
}

/* The same with a request that came with the client's last flight: it is in flight only now. */
static __always_inline void hold_first_turn(struct socket_state *st, struct socket_shard *shard, u64 first)
{
	if (!st->counted) {
		add(&shard->opened, 1);
		add(&shard->unanswered, 1);
		st->tls = TLS_CONNECTED;
		return;
	}
	st->tls = TLS_LAST;
	st->first_reply = first;
}

/* Something that came at `arrival` is read within an open request: may it be a goodbye? Its time stays. */
static __always_inline bool may_part(struct socket_state *st, u64 arrival, u64 last_read, u32 bytes)
{
	u32 kind;

	if (has_late_turn(st) || bytes > CLOSE_NOTIFY_BYTES)
		return false;
	if (st->tls != TLS_CONNECTED && !(st->tls == TLS_FLIGHT && has_asked_with_flight(st)))
		return false;
	kind = short_turn(bytes);
	if (kind == TLS_CONNECTED || (kind == TLS_NONE && !may_be_goodbye(bytes)))
		return false;
	st->may_be |= DOUBT_PARTING;
	if (kind != TLS_ALERT && st->tls == TLS_CONNECTED && elapsed(last_read, arrival) >= ONE_WAY_PAUSE_NS)
		st->may_be |= DOUBT_MESSAGE;
	st->late_arrival = arrival;
	return true;
}

/*
 * Something is sent: does that answer a message, behind one that nothing answers? It is as short then, and
 * the connection goes on. If it ends, both sides have said goodbye.
 */
static __always_inline void answer_parting(struct socket_state *st, struct socket_shard *shard,
					   struct sock *sk, u32 bytes)
{
	bool echoes = st->may_be & DOUBT_ECHO;
	bool message = st->may_be & DOUBT_MESSAGE && !(FIELD(sk, sk_shutdown) & RCV_SHUTDOWN) &&
		       (sends_goodbye(bytes) != TLS_NONE || bytes == CLOSE_NOTIFY_PADDED);

	st->may_be &= ~(DOUBT_PARTING | DOUBT_MESSAGE);
	if (!message)
		return;
	st->may_be = 0;
	if (is_counted_late(st)) {
		/* It was not in flight: nothing is owed. */
		add(&shard->oneway, !echoes);
	} else if (!was_forgotten(st)) {
		add(&shard->dismissed, 1);
		st->may_be = DOUBT_MESSAGE;
	}
	st->spoken = true;
	st->first_arrival = st->late_arrival;
	st->turn_arrival = st->late_arrival;
	st->turn_read = st->late_arrival;
	st->last_read = st->late_arrival;
	st->turn_bytes = st->read_bytes;
	if (st->turn_bytes == SHORT_RECORD)
		st->turn_bytes += TLS_RECORD_HEADER;
	st->tls = TLS_SHORT;
}

/* It was a message: the connection goes on. */
static __always_inline void end_doubt(struct socket_state *st, struct socket_shard *shard)
{
	if (!(st->may_be & DOUBT_MESSAGE))
		return;
	st->may_be &= ~DOUBT_MESSAGE;
	add(&shard->oneway, 1);
}

/* The longest end of a session in the clear (under TLS a goodbye follows it), and goodbyes under TLS 1.2
 * (AES-GCM, ChaCha20-Poly1305). */
#define PARTING_MOST 31
#define CLOSE_NOTIFY_GCM 31
#define CLOSE_NOTIFY_CHACHA20 23

/*
 * Was what came within the open turn a goodbye, or a database's end of session, which is as short, and the
 * client has closed its side behind it? Then it is no request that waits.
 */
static __always_inline bool has_only_parted(const struct socket_state *st, const struct tcp_sock *tp)
{
	u32 unread;
	bool shut;

	if (!tp)
		return false;
	shut = has_shut_down(tp);
	unread = FIELD(tp, rcv_nxt) - FIELD(tp, copied_seq) - shut;
	return (shut && (s32)unread <= (speaks_tls(st) ? CLOSE_NOTIFY_BYTES : PARTING_MOST)) ||
	       (speaks_tls(st) &&
		(may_be_goodbye(unread) || unread == CLOSE_NOTIFY_GCM || unread == CLOSE_NOTIFY_CHACHA20));
}
