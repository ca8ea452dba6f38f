/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Turns of a TLS handshake are no requests, and no calls of a client.
 *
 * A connection speaks TLS if one of its first turns begins with a record of type handshake, version 3.x (RFC
 * 8446, 5.1): the ClientHello. The turns of its handshake begin with a handshake or change_cipher_spec
 * record; a TLS 1.3 client may leave the latter out, and then the turn after the hello belongs to the
 * handshake. Such a turn is a request all the same if more data follows Finished: then the first request came
 * with it. Records are followed to detect that (socket_records.bpf.h). Where they cannot be followed, the
 * turn is a request if it is longer than the flight of a client without a certificate. A proxy may first name
 * the client that it speaks for (socket_proxy.bpf.h).
 *
 * Only the header of a record is read, in the buffer of the system call that reads it, and of a hello 512
 * bytes: where a server reads in the first turns of a connection, and later where a turn begins with a read
 * that is as short as a goodbye. Buffers of io_uring are not found, and its handshakes count as requests.
 */
#pragma once

#include "socket_alpn.bpf.h"
#include "socket_proxy.bpf.h"
#include "socket_records.bpf.h"
#include "socket_settings.bpf.h"
#include "socket_tickets.bpf.h"
#include "socket_tls.bpf.h"

#define CHANGE_CIPHER_SPEC_BYTES 6
/* Finished alone: 40 bytes and more in TLS 1.2, 58 in TLS 1.3. */
#define LAST_FLIGHT_LEAST 40
/* ServerHello (some 130, 1200 more with a key share that withstands quantum computers), EncryptedExtensions
   and Finished. */
#define RESUMING_FLIGHT_MOST 1600

/*
 * Does the turn belong to another handshake within the first one's keys? TLS 1.2 shows that by the records'
 * type. A server asks for one that wants a client's certificate for some of its pages. Under TLS 1.3 it asks
 * for that alone, and the lengths of the records tell when all of them are there.
 */
static __always_inline bool negotiates_again(struct socket_state *st)
{
	if ((st->tls != TLS_CONNECTED && st->tls != TLS_ASKED && st->tls != TLS_TICKET) ||
	    st->turns >= TLS_TURNS)
		return false;
	st->turns++;
	watch_records(st, WATCH_PROOF, 0);
	if (record_type(0) != TLS_HANDSHAKE)
		return false;
	/* It has another turn. */
	st->turns = TLS_TURNS - 1;
	return true;
}

/* A turn begins: does it look like one of a handshake, or like a goodbye? */
static __always_inline void begin_handshake_turn(struct socket_state *st, const struct tcp_sock *tp,
						 u32 bytes)
{
	const union record_watch answered = {.all = st->records};
	u8 before = st->tls;
	u32 proxy, record;
	u8 type;

	st->records = 0;
	if (speaks_tls(st)) {
		if (st->turns < TLS_TURNS)
			find_first_settings(st, bytes, true);
		note_first_frames(st, bytes, false);
		if (before == TLS_ASKED && answered.unfinished)
			/* What comes is the rest of a request, or comes before its reply. */
			st->tls = answered.counted ? TLS_REST : TLS_CONNECTED;
		else
			st->tls = negotiates_again(st) ? TLS_FINAL : connected_turn(bytes);
		if (before != TLS_CONNECTED) {
			st->opens = 0;
		} else if (st->opens && st->tls == TLS_CONNECTED) {
			st->tls = TLS_OPENING;
			watch_records(st, WATCH_FLIGHT | WATCH_FINISHED, 0);
		}
		return;
	}
	st->tls = TLS_NONE;
	if (st->turns >= TLS_TURNS)
		return;
	proxy = 0;
	record = record_header(0);
	if (!record && !st->turns) {
		proxy = proxy_header(bytes);
		if (proxy && proxy < bytes)
			record = record_header(proxy);
		else if (proxy)
			st->tls = TLS_PROXIED;
	}
	type = record;
	st->turns++;
	if (type == TLS_HANDSHAKE)
		st->tls =
		    before == TLS_HELLO || is_later_message(proxy + TLS_RECORD_HEADER, bytes, record >> 8)
			? TLS_FINAL
			: TLS_HELLO;
	else if (type == TLS_CHANGE_CIPHER_SPEC || (before == TLS_HELLO && type == TLS_APPLICATION_DATA))
		/* Without a hello it is the flight of a connection that is older than tacho. */
		st->tls = TLS_FLIGHT;
	else if (type == TLS_APPLICATION_DATA || type == TLS_ALERT_RECORD || has_kernel_tls(tp))
		/* A connection that is older than tacho. */
		st->tls = connected_turn(bytes);
	if (st->tls == TLS_HELLO) {
		st->http1 = false;
		note_offer(st, bytes);
	}
	if (st->tls == TLS_FLIGHT)
		watch_records(st, WATCH_FLIGHT | (answered.flags & WATCH_EARLY), 0);
	else if (st->tls == TLS_HELLO || st->tls == TLS_FINAL)
		watch_records(st, WATCH_FLIGHT, proxy);
}

/*
 * More is read in a turn: a second ClientHello (HelloRetryRequest) comes right behind change_cipher_spec, the
 * first one behind a proxy's header. Only there does a record begin for sure; elsewhere what is read may be
 * the inside of one, where any bytes can stand. What is short behind change_cipher_spec is Finished, with
 * which a client resumes a session of TLS 1.2.
 */
static __always_inline void continue_handshake_turn(struct socket_state *st, u32 bytes)
{
	const union record_watch watch = {.all = st->records};
	u32 least = st->tls == TLS_FLIGHT ? LAST_FLIGHT_BYTES : 0;
	u32 record;

	if (speaks_tls(st)) {
		find_first_settings(st, bytes, false);
		note_first_frames(st, bytes, false);
	}
	if (st->tls == TLS_OPENING && watch.flags & WATCH_SETTLED) {
		st->tls = TLS_CONNECTED;
		st->counted_late = true;
		st->opens = 0;
		st->records = 0;
		return;
	}
	/* No goodbye: a library reads the header of a record in pieces. */
	if (st->tls == TLS_SHORT && st->turn_bytes == ALERT_BYTES && bytes != ALERT_BYTES) {
		st->tls = TLS_CONNECTED;
		st->counted_late = true;
		return;
	}
	if (st->tls == TLS_HELLO && st->turns == 1 && st->turn_bytes == TLS_RECORD_HEADER &&
	    is_later_message(0, bytes, watch.rest == RECORDS_LOST ? 0 : watch.rest)) {
		st->tls = TLS_FINAL;
		return;
	}
	if (st->tls == TLS_HELLO && !st->http1)
		note_offer(st, bytes);
	if (st->tls != TLS_PROXIED && (st->tls != TLS_FLIGHT || st->turn_bytes != CHANGE_CIPHER_SPEC_BYTES))
		return;
	record = record_header(0);
	if ((u8)record != TLS_HANDSHAKE || record >> 8 <= least)
		return;
	st->tls = TLS_HELLO;
	note_offer(st, bytes);
	watch_records(st, WATCH_FLIGHT, 0);
}

/* Has the open turn brought all of the client's last flight, which not every server answers? */
static __always_inline bool is_whole_flight(const struct socket_state *st)
{
	const union record_watch watch = {.all = st->records};

	if (st->tls != TLS_FLIGHT)
		return false;
	if (records_were_followed(&watch))
		return watch.flags & WATCH_FINISHED && !watch.rest && !watch.behind;
	return st->turn_bytes >= LAST_FLIGHT_LEAST && st->turn_bytes <= LAST_FLIGHT_BYTES;
}

/* What came is no part of the handshake any more. */
static __always_inline void end_handshake(struct socket_state *st)
{
	st->tls = TLS_CONNECTED;
}

/*
 * Under TLS 1.2: did a request come right behind the client's part of the handshake (False Start, RFC 7918)?
 * Records were followed then.
 */
static __always_inline bool is_false_start(const struct socket_state *st)
{
	const union record_watch watch = {.all = st->records};

	return st->tls == TLS_FINAL && watch.flags & WATCH_FLIGHT && watch.flags & WATCH_FINISHED &&
	       records_were_followed(&watch) && watch.behind;
}

/* Then what the server sends first ends the handshake, and the turn goes on: does it, and nothing else? */
static __always_inline bool only_ends_handshake(struct socket_state *st, struct socket_shard *shard,
						u32 bytes)
{
	union record_watch watch = {.all = st->records};
	u8 type;

	if (!is_false_start(st))
		return false;
	type = record_type(0);
	if ((type != TLS_HANDSHAKE && type != TLS_CHANGE_CIPHER_SPEC) || has_data_behind_handshake(bytes))
		return false;
	if (!(watch.flags & WATCH_SETTLED))
		add(&shard->handshakes, 1);
	watch.flags |= WATCH_SETTLED;
	st->records = watch.all;
	return true;
}

/*
 * The hello is answered. What came right behind it under keys of an earlier session is a request (early data,
 * RFC 8446, 2.3), if the server takes it. Then its reply follows, before anything more is read; or the client
 * tells where the early data ends, and the reply follows that. Who resumes a session shows no certificate: a
 * longer flight does not, and may be sent in pieces.
 */
static __always_inline void note_early_data(struct socket_state *st, u32 bytes)
{
	const union record_watch watch = {.all = st->records};

	st->records = 0;
	if (bytes <= RESUMING_FLIGHT_MOST && (watch.messages || watch.flags & WATCH_FINISHED))
		watch_records(st, WATCH_FLIGHT | WATCH_EARLY, 0);
}

/* Something is sent, and nothing was read since the hello was answered: is it the reply to early data? */
static __always_inline bool answers_early_data(struct socket_state *st)
{
	const union record_watch watch = {.all = st->records};

	if (st->tls != TLS_HELLO || !(watch.flags & WATCH_EARLY))
		return false;
	st->records = 0;
	return true;
}

/* The open turn is answered by a send of so many bytes: was it a request, after all? */
static __always_inline bool end_special_turn(struct socket_state *st, u32 bytes)
{
	bool request;

	switch (st->tls) {
	case TLS_HELLO:
		note_early_data(st, bytes);
		return false;
	case TLS_FLIGHT:
		return end_flight(st, bytes);
	case TLS_FINAL:
		request = is_false_start(st);
		st->tls = TLS_CONNECTED;
		return request;
	case TLS_REST:
		st->tls = TLS_CONNECTED;
		return false;
	case TLS_ALERT:
		st->tls = TLS_CONNECTED;
		return st->turn_bytes > CLOSE_NOTIFY_BYTES;
	case TLS_SHORT:
		st->tls = is_answered_alike(st->turn_bytes, bytes) || is_answered_with_tickets(st, bytes)
			      ? TLS_HELD
			      : TLS_CONNECTED;
		return st->tls != TLS_HELD;
	case TLS_PROXIED:
		st->tls = TLS_NONE;
		if (st->turn_bytes != st->read_bytes)
			return true;
		/* The header alone: the server speaks first. */
		st->turns = 0;
		return false;
	case TLS_OPENING:
		st->tls = TLS_CONNECTED;
		st->opens = 0;
		return true;
	default:
		return true;
	}
}
