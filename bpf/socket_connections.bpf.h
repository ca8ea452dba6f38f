/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* The life of connections: when they count, and how their end decides on a turn that is open or in doubt. */
#pragma once

#include "socket_anatomy.bpf.h"
#include "socket_brokers.bpf.h"
#include "socket_first_byte.bpf.h"
#include "socket_http2.bpf.h"
#include "socket_node.bpf.h"
#include "socket_peers.bpf.h"
#include "socket_state.bpf.h"
#include "socket_tickets.bpf.h"
#include "socket_tls.bpf.h"

static __always_inline u32 role_index(const struct socket_state *st)
{
	return st->role == TACHO_ROLE_CLIENT;
}

static __always_inline bool has_connections(const struct socket_state *st)
{
	return !st->close_unseen && (st->role == TACHO_ROLE_SERVER || st->role == TACHO_ROLE_CLIENT);
}

static __always_inline bool may_be_no_request(const struct socket_state *st)
{
	return st->tls > TLS_CONNECTED || st->counted_late || speaks_to_broker(st);
}

/* Turns that are counted only when they are answered, since they may turn out to be none or never end. */
static __always_inline bool is_counted_late(const struct socket_state *st)
{
	return st->close_unseen || may_be_no_request(st);
}

static __always_inline bool is_open(const struct socket_state *st)
{
	return st->turn != st->ended;
}

/*
 * A turn that stays open for seconds may be none (socket_sweep.bpf.h): the sweep leaves a mark at it, and at
 * its next visit takes it from what is in flight, if the mark still stands. Whoever goes on with the turn
 * takes the mark away: only one of the two finds it.
 */
#define LEFT_SEEN (1ULL << 32)
#define LEFT_FORGOTTEN (2ULL << 32)

/* @return whether the open turn was taken from what is in flight */
static __always_inline bool was_forgotten(struct socket_state *st)
{
	if (!*(volatile u64 *)&st->left_waiting)
		return false;
	return exchange(&st->left_waiting, 0) == (LEFT_FORGOTTEN | st->turn);
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

#define OBSERVE(histogram, ns, atomic)                                                                       \
	do {                                                                                                 \
		if (atomic)                                                                                  \
			observe_atomic(histogram, ns);                                                       \
		else                                                                                         \
			observe(histogram, ns);                                                              \
	} while (0)

/* The turn is answered, beginning at `first`. `atomic`: the shard is the shared one. */
static __always_inline void observe_answer(const struct socket_state *st, struct socket_shard *shard,
					   u64 first, bool atomic)
{
	u64 received = elapsed(st->first_arrival, st->turn_arrival);

	OBSERVE(&shard->queue, elapsed(st->turn_arrival, st->turn_read), atomic);
	OBSERVE(&shard->service, elapsed(st->last_read, first), atomic);
	OBSERVE(&shard->duration, elapsed(st->turn_arrival, first), atomic);
	if (received)
		OBSERVE(&shard->receive, received, atomic);
}

static __always_inline void finish_reply(struct socket_state *st, struct socket_shard *shard, bool atomic)
{
	u64 first = st->first_reply;

	if (!first)
		return;
	st->first_reply = 0;
	OBSERVE(&shard->reply, elapsed(first, st->last_send), atomic);
}

/*
 * Something was sent in the open turn: if no hook has ended the turn, that of the send is under way. Sockets
 * other than TCP's tell when the first piece leaves, or do not tell.
 */
static __always_inline bool is_being_answered(const struct socket_state *st, const struct tcp_sock *tp)
{
	return tp ? FIELD(tp, write_seq) != st->write_seq : st->first_out != 0;
}

/*
 * Is a turn kept for the hook of the send that answers it (begins_another())? Not where that hook has ended
 * the turn on another CPU while it was being kept.
 */
static __always_inline bool has_late_turn(const struct socket_state *st)
{
	return st->late_read && st->late_turn != st->ended;
}

/* Its target was gone since: what happened to the socket meanwhile is not known. */
static __always_inline bool is_out_of_date(const struct socket_state *st)
{
	return was_empty_since(&st->target, st->generation);
}

/* How a connection ends, or leaves its target. */
enum connection_end {
	END_BEGINS,    /* the hook of a send may still come */
	END_IS_OVER,   /* no more */
	END_IS_LEAVING /* it goes on elsewhere */
};

/*
 * The turn whose late hook will not come (begins_another()), unless it is the open one. A global function:
 * verified once a program. @param target index and epoch @param reply it got one that nobody has seen
 */
__noinline int dismiss_late_turn(u64 target, u32 differs, u32 reply)
{
	struct target_ref from = {.index = target >> 32, .epoch = target};
	struct socket_shard *shared = differs ? get_shared_shard(&from) : NULL;

	if (shared) {
		add_atomic(&shared->dismissed, 1);
		if (reply)
			add_atomic(&shared->unseen_replies, 1);
	}
	return 0;
}

/* The turns of a unix socket count when they are answered. Without branches, which the verifier would follow.
 */
static __always_inline u32 differs_from_late(const struct socket_state *st)
{
	return (st->late_turn ^ st->turn) & ((u32)st->close_unseen - 1);
}

/*
 * Does the connection end behind a request that came with the client's last flight, or within which the
 * client may have said goodbye?
 */
static __always_inline bool is_left_unanswered(const struct socket_state *st, bool unseen)
{
	if (st->tls == TLS_FLIGHT)
		return is_open(st) && !unseen && st->role == TACHO_ROLE_SERVER && has_asked_with_flight(st);
	return st->tls == TLS_HELD && st->may_be & DOUBT_MESSAGE;
}

/*
 * A turn that has a reply of which no hook has told, nor will one, is in flight no more: somebody sent it who
 * is not watched, or the hook was kept from us.
 * @return whether a turn was open, of a target that is still there
 */
static __always_inline bool count_end(struct socket_state *st, struct sock *sk, enum connection_end end)
{
	struct socket_shard *shared = get_shared_shard(&st->target);
	bool unseen = end == END_IS_LEAVING || is_being_answered(st, tcp_sock_of(sk));
	bool open = is_open(st) && (end != END_BEGINS || !unseen || is_out_of_date(st));

	if (shared) {
		if (st->tls == TLS_LAST || is_left_unanswered(st, unseen)) {
			add_atomic(&shared->opened, 1);
			add_atomic(&shared->unanswered, 1);
		} else if (st->tls != TLS_HELD && st->role == TACHO_ROLE_SERVER) {
			finish_reply(st, shared, true);
		}
		if (open && !is_counted_late(st) && !is_left_out(st) && !was_forgotten(st)) {
			add_atomic(unseen ? &shared->dismissed : &shared->unanswered, 1);
			if (unseen && end != END_IS_LEAVING)
				add_atomic(&shared->unseen_replies, 1);
		}
		if (st->counted)
			add_atomic(&shared->connections_closed[role_index(st)], 1);
	}
	http2_closed(st, sk, shared, end == END_IS_LEAVING);
	if (end != END_BEGINS && has_late_turn(st)) {
		st->late_read = 0;
		dismiss_late_turn((u64)st->target.index << 32 | st->target.epoch, differs_from_late(st),
				  end != END_IS_LEAVING);
	}
	st->first_reply = 0;
	st->counted = false;
	st->may_be &= ~DOUBT_MESSAGE;
	if (st->tls == TLS_LAST)
		st->tls = TLS_CONNECTED;
	release_reader(st);
	if (open)
		st->ended = st->turn;
	return open && shared;
}

/*
 * After its end a connection can still be read from, what then comes gets no reply. A unix socket that has
 * said goodbye stays connected.
 */
static __always_inline bool can_answer(struct sock *sk)
{
	u8 state = FIELD(sk, __sk_common.skc_state);

	if (FIELD(sk, sk_shutdown) & SEND_SHUTDOWN)
		return false;
	return state == TCP_ESTABLISHED || state == TCP_CLOSE_WAIT || state == TCP_SYN_RECV;
}

/* A server that has said goodbye ends the connection at once; a client may do so when it has its reply. */
static __always_inline bool is_ended_by_us(struct sock *sk, int state)
{
	return state == TCP_ESTABLISHED && FIELD(sk, sk_shutdown) & SEND_SHUTDOWN;
}

/* Who has said goodbye reads no more, nor the client's own, which came meanwhile. Its end is one byte, too.
 */
static __always_inline bool has_left_unread(struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sock_of(sk);

	return tp && FIELD(tp, rcv_nxt) - FIELD(tp, copied_seq) > 1;
}

/* What may have been a goodbye, or a ticket, was a reply. */
static __always_inline void observe_last_turn(struct socket_state *st)
{
	struct socket_shard *shared = get_shared_shard(&st->target);

	st->tls = TLS_CONNECTED;
	if (!shared)
		return;
	add_atomic(&shared->opened, 1);
	observe_answer(st, shared, st->first_reply, true);
}

/* The connection is handed to another target, or its end was missed. */
static __always_inline bool count_closed(struct socket_state *st, struct sock *sk, enum connection_end end)
{
	if (end != END_IS_LEAVING && got_tickets(st) && brought_tickets(st))
		st->tls = TLS_LAST;
	else if (st->tls == TLS_TICKET || got_tickets(st))
		observe_last_turn(st);
	return count_end(st, sk, end);
}

/* In which a send may be under way. MPTCP closes anew what a fast close (RFC 8684, 3.5) has just closed. */
#define STATES_OF_SENDS (1U << TCP_ESTABLISHED | 1U << TCP_CLOSE_WAIT | 1U << TCP_SYN_RECV | 1U << TCP_CLOSE)

/*
 * The connection is over, which was in `state`. A reset may come while a send is under way whose hook has
 * still to run: that one will end the turn. When a goodbye has been answered, no send is under way.
 */
static __always_inline void connection_ended(struct socket_state *st, struct sock *sk, int state)
{
	if (got_tickets(st) && brought_tickets(st))
		st->tls = TLS_LAST;
	else if (st->tls == TLS_TICKET || got_tickets(st) ||
		 (st->tls == TLS_LAST && !st->parted && !is_ended_by_us(sk, state) && !has_left_unread(sk)))
		observe_last_turn(st);
	count_end(st, sk, 1U << (state & 31) & STATES_OF_SENDS ? END_BEGINS : END_IS_OVER);
}
