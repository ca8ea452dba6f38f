/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Calls on client sockets: open from the last send to the first data that comes back. */
#pragma once

#include "socket_alpn.bpf.h"
#include "socket_anatomy.bpf.h"
#include "socket_call_parting.bpf.h"
#include "socket_first_byte.bpf.h"
#include "socket_handshake.bpf.h"
#include "socket_interim.bpf.h"
#include "socket_peers.bpf.h"
#include "socket_pipelining.bpf.h"
#include "socket_state.bpf.h"

/* What came back at `back` was read at `now`. */
static __always_inline void observe_call(const struct socket_state *st, u64 back, u64 now)
{
	struct dependency *dependency = get_dependency(&st->target, st->peer);

	if (!dependency)
		return;
	observe_atomic(&dependency->duration, elapsed(st->last_send, back));
	if (note_call_in_line(st, now))
		add_atomic(&dependency->in_line_ns, elapsed(st->last_send, now));
}

/* Something was sent since calls were answered last. Our FIN has a place in the stream, too. */
static __always_inline bool has_sent(const struct socket_state *st, struct sock *sk,
				     const struct tcp_sock *tp)
{
	u32 beyond = FIELD(tp, write_seq) - st->write_seq;

	return beyond && !(beyond == 1 && FIELD(sk, sk_shutdown) & SEND_SHUTDOWN);
}

/*
 * What is answered was sent by another thread, whose hook is still to run: TCP knows when, in jiffies. Up to
 * one of them later than that, so that no call took longer than it did.
 */
static __always_inline u64 sent_unseen(const struct socket_state *st, const struct tcp_sock *tp, u64 now)
{
	u32 ago = tp && jiffy_ns ? (u32)bpf_jiffies64() - FIELD(tp, lsndtime) : 0;
	u64 sent = ago > 1 ? now - (u64)(ago - 1) * jiffy_ns : now;

	return elapsed(sent, st->last_send) ? st->last_send : sent;
}

/*
 * Is what a client sends, which has read the server's part of the handshake, its last flight under TLS 1.3
 * and nothing else? Its first record is encrypted, as that of TLS 1.2 is not.
 */
static __always_inline bool is_last_flight(u32 bytes)
{
	union record_watch watch = {.flags = WATCH_FLIGHT};
	u8 type = record_type(0);

	if (type == TLS_CHANGE_CIPHER_SPEC)
		type = record_type(CHANGE_CIPHER_SPEC_BYTES);
	if (type != TLS_APPLICATION_DATA)
		return false;
	watch.all = follow_records(watch.all, bytes);
	return records_were_followed(&watch) && watch.flags & WATCH_FINISHED && !watch.rest && !watch.behind;
}

/*
 * The same under TLS 1.2, where the server's change_cipher_spec comes first if a session is resumed: the
 * client's is not behind its keys then, but the first that it sends.
 */
static __always_inline bool is_last_flight_tls12(struct socket_state *st, u32 bytes)
{
	u32 record = record_header(0), begin = 0;

	if (!st->call_open && (u8)record == TLS_CHANGE_CIPHER_SPEC) {
		if (bytes == CHANGE_CIPHER_SPEC_BYTES)
			st->tls = TLS_RESUMES;
		begin = CHANGE_CIPHER_SPEC_BYTES;
		record = record_header(begin);
	} else if (st->tls != TLS_RESUMES) {
		return false;
	}
	return (u8)record == TLS_HANDSHAKE && is_finished(TLS_HANDSHAKE, record >> 8) &&
	       begin + TLS_RECORD_HEADER + (record >> 8) == bytes;
}

/*
 * Does a client send a handshake's message in the clear, beyond its hello? Under TLS 1.3 there is none: then
 * what looks like Finished of TLS 1.3 is a call as long.
 */
static __always_inline bool sends_later_message(u32 bytes)
{
	u32 record = record_header(0);

	return (u8)record == TLS_HANDSHAKE && is_later_message(TLS_RECORD_HEADER, bytes, record >> 8);
}

static __always_inline bool shakes_hands(const struct socket_state *st)
{
	return st->tls == TLS_HELLO || st->tls == TLS_RESUMES || st->tls == TLS_FINAL;
}

/* The answer to the call that the handshake has interrupted, which is over. */
static __always_inline void end_interruption(struct socket_state *st, u64 back, u64 now)
{
	st->tls = TLS_CONNECTED;
	st->last_send = st->interrupted;
	st->interrupted = 0;
	observe_call(st, back, now);
}

/* What was held is no goodbye. */
static __always_inline void end_short_answer(struct socket_state *st)
{
	st->tls = TLS_CONNECTED;
	st->may_be &= ~DOUBT_PARTING;
	observe_call(st, st->first_reply, st->first_reply);
	st->first_reply = 0;
}

/*
 * An answer to a client begins: does it carry the handshake on? The server's flights begin with a handshake
 * record, or with change_cipher_spec (TLS 1.2 without a ticket); once data of the application comes, the
 * handshake is over. Under TLS 1.2 a server may answer a call by asking for another handshake: then its
 * answer comes behind that.
 */
static __always_inline bool answers_handshake(struct socket_state *st, const struct tcp_sock *tp)
{
	u8 type;

	if (st->tls == TLS_FLIGHT) {
		/* Tickets, or a greeting. */
		st->tls = TLS_CONNECTED;
		return true;
	}
	if ((speaks_tls(st) && st->tls != TLS_CONNECTED) || (st->turns >= TLS_TURNS && !st->interrupted))
		return false;
	if (st->turns < TLS_TURNS)
		st->turns++;
	type = record_type(0);
	if (type == TLS_HANDSHAKE || (type == TLS_CHANGE_CIPHER_SPEC && shakes_hands(st))) {
		if (st->tls == TLS_CONNECTED || st->asks)
			st->interrupted = st->last_send;
		if (st->tls != TLS_FINAL)
			st->tls = TLS_HELLO;
		st->asks = false;
		return true;
	}
	/* It is refused, or the server says goodbye: neither answers a call. */
	if (type == TLS_ALERT_RECORD)
		st->tls = TLS_ALERT;
	/* The handshake of a connection that is older than tacho was not seen. */
	else if (shakes_hands(st) || type == TLS_APPLICATION_DATA || has_kernel_tls(tp))
		st->tls = TLS_CONNECTED;
	return false;
}

/*
 * What a client sends under TLS 1.3, if it is as short as a goodbye: enum tls_state. Java says its goodbye in
 * two sends, which are longer.
 */
static __always_inline u8 may_be_last(u32 bytes, u8 otherwise)
{
	if (bytes <= CLOSE_NOTIFY_TLS13)
		return TLS_SHORT;
	return bytes == CLOSE_NOTIFY_PADDED ? TLS_PADDED : otherwise;
}

/*
 * What a client sends first on a connection that nothing is known of: enum tls_state. If it is all of a
 * record that is as long as a goodbye, the connection is older than tacho and speaks TLS.
 */
static __always_inline u8 first_sent(const struct tcp_sock *tp, u32 bytes)
{
	u32 record;

	if (bytes == ALERT_BYTES)
		return has_kernel_tls(tp) ? TLS_SHORT : TLS_NONE;
	record = record_header(0);
	if ((record >> 8) + TLS_RECORD_HEADER != bytes)
		return TLS_NONE;
	if ((u8)record == TLS_ALERT_RECORD)
		return TLS_ALERT;
	return (u8)record == TLS_APPLICATION_DATA ? may_be_last(bytes, TLS_NONE) : TLS_NONE;
}

/* Has a client sent its certificate, which it was asked for behind the handshake of TLS 1.3? */
static __always_inline bool proves_client(struct socket_state *st, u32 bytes)
{
	if (st->turns >= TLS_TURNS)
		return false;
	if (!st->call_open)
		watch_records(st, WATCH_PROOF, 0);
	st->records = follow_records(st->records, bytes);
	return is_proof(st);
}

/*
 * Is what a client sends a goodbye? That shows in what is sent: what comes back may be more than the peer's
 * goodbye (session tickets that nobody has read, the rest of a reply). @return whether it may be one within
 * the open call
 */
static __always_inline bool begin_goodbye(struct socket_state *st, const struct tcp_sock *tp, u64 now,
					  u32 bytes)
{
	bool again = st->tls == TLS_PADDED && st->call_open && bytes == CLOSE_NOTIFY_PADDED;
	bool asked = has_asked(st, shakes_hands(st), bytes) || (again && st->may_be & DOUBT_PARTING);
	u32 kind, state;

	if (speaks_tls(st) || st->tls == TLS_FLIGHT) {
		st->tls = proves_client(st, bytes) ? TLS_FLIGHT : TLS_CONNECTED;
	} else if (!shakes_hands(st)) {
		if (st->turns)
			return false;
		state = bytes <= CLOSE_NOTIFY_BYTES ? first_sent(tp, bytes) : TLS_NONE;
		if (st->call_open) {
			if (state != TLS_ALERT && state != TLS_SHORT)
				return false;
			part_within_call(st, state == TLS_SHORT ? now : 0);
			return true;
		}
		st->tls = state;
		if (bytes > CLOSE_NOTIFY_BYTES && record_type(0) == TLS_HANDSHAKE)
			st->http1 = offered_protocols(bytes) & OFFERS_HTTP1;
		return false;
	} else if (st->tls != TLS_FINAL && (is_last_flight(bytes) || is_last_flight_tls12(st, bytes))) {
		st->tls = TLS_FLIGHT;
		/* As on a new connection: tickets come unasked (answers_earlier_call()). */
		st->sampler = 0;
	} else {
		if (sends_later_message(bytes))
			st->tls = TLS_FINAL;
		if (record_type(0) == TLS_APPLICATION_DATA || has_data_behind_handshake(bytes))
			st->asks = true;
	}
	if (bytes > CLOSE_NOTIFY_BYTES)
		return false;
	kind = short_turn(bytes);
	/* Under TLS 1.2 a goodbye shows its type. */
	if (kind == TLS_CONNECTED || (st->tls == TLS_FINAL && kind == TLS_SHORT))
		return false;
	state = may_be_last(bytes, st->tls);
	if (kind == TLS_ALERT || (kind == TLS_SHORT && again))
		state = TLS_ALERT;
	else if (kind == TLS_SHORT && bytes == CLOSE_NOTIFY_PADDED_TWICE)
		state = TLS_SHORT;
	if (!asked || state == TLS_PADDED)
		st->tls = state;
	if (!asked || (state != TLS_ALERT && state != TLS_SHORT && state != TLS_PADDED))
		return false;
	part_within_call(st, kind == TLS_ALERT ? 0 : now);
	return true;
}

/* Something came back: does it answer a goodbye, which is no call? Under TLS 1.3 that is known later. */
static __always_inline bool answers_goodbye(struct socket_state *st, const struct tcp_sock *tp, u64 back,
					    u32 bytes)
{
	if (st->may_be & DOUBT_PARTING)
		return leaves_parted_call(st, tp, back, bytes);
	if (st->tls == TLS_SHORT || (st->tls == TLS_PADDED && is_short_record(record_header(0) >> 8))) {
		st->tls = TLS_HELD;
		st->first_reply = back;
		return true;
	}
	return st->tls == TLS_ALERT;
}

static __always_inline void client_sent(struct socket_state *st, struct sock *sk, const struct tcp_sock *tp,
					u64 now, u32 bytes)
{
	if (st->tls == TLS_HELD) {
		go_on_with_message(st);
		observe_call(st, st->first_reply, st->first_reply);
	}
	st->first_reply = 0;
	if (begin_goodbye(st, tp, now, bytes))
		return;
	st->may_be &= ~DOUBT_PARTING;
	st->last_send = now;
	if (st->call_open) {
		st->turn_bytes += bytes;
		sample_open_call(st, now, bytes);
	} else {
		st->goes_on = st->noted & NOTED_INTERIM;
		st->turn_bytes = bytes;
		st->interim = false;
		st->noted &= ~NOTED_INTERIM;
		sample_call(st, bytes);
		if (leaves_answer_unread(st, tp))
			st->overlap = true;
	}
	/* Another thread may have read the answer before this hook of the send has run. */
	if (!tp || has_sent(st, sk, tp))
		st->call_open = true;
}

static __always_inline void client_received(struct socket_state *st, struct socket_shard *shard,
					    struct sock *sk, const struct tcp_sock *tp, u64 now, u32 bytes)
{
	u64 back = st->arrival ? st->arrival : now;

	st->arrival = 0;
	if (!st->call_open && (!tp || !has_sent(st, sk, tp))) {
		/* Tickets have ended the first call. */
		if (st->sampler <= 1 && st->tls == TLS_CONNECTED && is_interim_answer(st, bytes))
			return;
		if (st->interrupted && record_type(0) == TLS_APPLICATION_DATA)
			end_interruption(st, back, now);
		/* More of the server's part of a handshake. */
		else if (st->tls == TLS_HELLO)
			watch_protocol(st, bytes);
		else if (was_short_answer(st))
			end_short_answer(st);
		return;
	}
	if (is_interim_answer(st, bytes) || is_only_tickets(st, bytes))
		return;
	if (!st->call_open)
		st->last_send = sent_unseen(st, tp, now);
	st->call_open = false;
	if (tp)
		st->write_seq = FIELD(tp, write_seq);
	if (st->role == TACHO_ROLE_CLIENT && answers_handshake(st, tp)) {
		if (st->interrupted && has_data_behind_handshake(bytes))
			end_interruption(st, back, now);
		else
			watch_protocol(st, bytes);
		return;
	}
	st->interrupted = 0;
	if (st->role == TACHO_ROLE_CLIENT && answers_goodbye(st, tp, back, bytes))
		return;
	st->noted &= ~NOTED_INTERIM;
	if (!st->goes_on)
		observe_call(st, back, now);
	count_multiplexed_call(st, shard);
}
