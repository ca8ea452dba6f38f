/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * HTTP/2 under TLS begins with settings of both sides (RFC 9113, 3.4). A client may wait for the server's
 * settings before it asks, or its first request may be read a moment later. Then the data that the server
 * sends is no reply, and the turn that began with the client's settings continues with the request.
 *
 * This is detected by sizes: the client's data is as long as preface and settings, and the server's data is,
 * together, as long as settings, a window and an acknowledgement. A request and a reply that are equally
 * short, both to the byte, are taken for settings, too; the shortest fields that servers send are longer.
 *
 * A client acknowledges the server's settings in a frame without anything in it, mostly in a record of its
 * own. No request is as short, so a turn that brought nothing else is none, whatever is sent behind it.
 */
#pragma once

#include "socket_records.bpf.h"
#include "socket_state.bpf.h"
#include "socket_tls.bpf.h"

/* Preface (24), SETTINGS (9) without any. */
#define FIRST_SETTINGS_LEAST 33
/* A client's come with up to seven, others with six; three more are defined (RFC 8441, 9218). */
#define SETTING_BYTES 6
#define FIRST_SETTINGS 7
#define OTHER_SETTINGS 6
#define WINDOW_BYTES 13
#define FRAME_BYTES 9
/* Under TLS 1.3: header (5), type (1) and tag (16). */
#define TLS13_EXPANSION 22

/* Of the records behind Finished. */
static __always_inline u32 plain_bytes(const union record_watch *watch, u32 expansion)
{
	u32 added = watch->run * expansion;

	return watch->behind > added ? watch->behind - added : 0;
}

static __always_inline bool is_list_of_settings(u32 bytes, u32 before, u32 most)
{
	return bytes >= before && bytes <= before + most * SETTING_BYTES &&
	       (bytes - before) % SETTING_BYTES == 0;
}

static __always_inline bool is_first_flight(u32 bytes)
{
	return is_list_of_settings(bytes, FIRST_SETTINGS_LEAST, FIRST_SETTINGS) ||
	       is_list_of_settings(bytes, FIRST_SETTINGS_LEAST + WINDOW_BYTES, FIRST_SETTINGS);
}

/*
 * @return whether what the client has sent so far is as long as its settings, and as it is with the
 * acknowledgement of the server's, which may have come before
 */
static __always_inline bool may_be_settings(const union record_watch *watch, u32 expansion,
					    bool behind_handshake)
{
	u32 bytes = plain_bytes(watch, expansion);

	if (!records_were_followed(watch) || !(watch->flags & WATCH_FINISHED) || watch->rest)
		return false;
	return is_first_flight(bytes) || (!behind_handshake && is_first_flight(bytes - FRAME_BYTES));
}

/* Any of SETTINGS, WINDOW_UPDATE and the acknowledgement of the client's. */
static __always_inline bool may_settle(u32 bytes)
{
	return !bytes || is_list_of_settings(bytes, FRAME_BYTES, OTHER_SETTINGS) ||
	       is_list_of_settings(bytes, FRAME_BYTES + WINDOW_BYTES, OTHER_SETTINGS) ||
	       is_list_of_settings(bytes, 2 * FRAME_BYTES, OTHER_SETTINGS) ||
	       is_list_of_settings(bytes, 2 * FRAME_BYTES + WINDOW_BYTES, OTHER_SETTINGS);
}

/*
 * Something is sent in the open turn: session tickets, or the server's settings, but no reply? Then the turn
 * goes on.
 */
static __always_inline bool only_settles(struct socket_state *st, struct socket_shard *shard, u32 bytes)
{
	union record_watch watch = {.all = st->records};
	union record_watch sent = {.flags = WATCH_FLIGHT | WATCH_FINISHED};
	bool behind_handshake = st->tls == TLS_FLIGHT;
	u32 settings;

	if (!st->opens || (st->tls != TLS_OPENING && !behind_handshake) ||
	    !may_be_settings(&watch, st->opens, behind_handshake))
		return false;
	if (behind_handshake)
		sent.flags |= WATCH_TICKETS;
	else if (watch.flags & WATCH_TICKETS && bytes == watch.last)
		return true;
	else if (watch.flags & WATCH_TICKETS)
		watch.last = 0;
	sent.all = follow_records(sent.all, bytes);
	settings = watch.last + plain_bytes(&sent, st->opens);
	if (!records_were_followed(&sent) || sent.rest || !may_settle(settings))
		return false;
	if (behind_handshake)
		add(&shard->handshakes, 1);
	watch.flags = WATCH_FLIGHT | WATCH_FINISHED | WATCH_SETTLED;
	watch.last = settings;
	if (!settings) {
		/* One ticket is as long as the other. */
		watch.flags |= WATCH_TICKETS;
		watch.last = bytes;
	}
	st->records = watch.all;
	st->tls = TLS_OPENING;
	return true;
}

/*
 * A server that puts all messages of its handshake into one record (BoringSSL, rustls, Java) does not show
 * that it chose HTTP/2. Its client may, under TLS 1.3: one of its first records has nothing but an
 * acknowledgement of the server's settings, and the server has sent what is as long as those before. What the
 * client has sent first, in a record of its own, is as long as preface and settings; or more is in it (a
 * request), and the server has sent its settings before it answers anything.
 *
 * Other protocols have such lengths in another order: a head and a body of nine bytes are read before
 * anything is sent, and what is as short as a reply comes behind a request that was read.
 */
enum settles {
	SETTLES_NOT,
	SETTLES_FIRST,	/* nothing was read behind the client's part of the handshake */
	SETTLES_ALONE,	/* its first record is as long as settings, */
	SETTLES_PADDED, /* with what Java adds */
	SETTLES_LONGER, /* it may have more in it */
	SETTLES_THIRD,	/* two were read, in one turn */
	SETTLES_STATES = 7,
	/* Flags: the server has sent what may be its settings, */
	SETTLES_AGREED = 8,
	SETTLES_UNASKED = 16, /* before anything was read behind the client's part of the handshake */
};

/* Java adds 16 bytes of nothing to each record. */
#define TLS13_EXPANSION_PADDED (TLS13_EXPANSION + 16)
/* So many records of a call are looked at. */
#define SETTLING_RECORDS 6
/* A server's have one at least. */
#define SERVER_SETTINGS_LEAST (FRAME_BYTES + SETTING_BYTES)

/* Behind the client's part of the handshake: what its next record tells, which has so many bytes. */
static __always_inline u32 next_settles(u32 state, u32 record)
{
	if (state != SETTLES_FIRST)
		return state == SETTLES_THIRD ? SETTLES_NOT : SETTLES_THIRD;
	if (is_first_flight(record - TLS13_EXPANSION))
		return SETTLES_ALONE;
	if (is_first_flight(record - TLS13_EXPANSION_PADDED))
		return SETTLES_PADDED;
	return record >= FIRST_SETTINGS_LEAST + TLS13_EXPANSION ? SETTLES_LONGER : SETTLES_NOT;
}

/* The client's last flight ends, and is followed by the records of `watch`. */
static __always_inline void note_first_settings(struct socket_state *st, const union record_watch *watch)
{
	u8 agreed = st->settles & ~SETTLES_STATES;

	if ((st->settles & SETTLES_STATES) != SETTLES_FIRST || !records_were_followed(watch) ||
	    !(watch->flags & WATCH_FINISHED) || watch->run > 2)
		st->settles = SETTLES_NOT;
	else if (watch->run == 2)
		st->settles = SETTLES_THIRD | agreed;
	else if (watch->run)
		st->settles = next_settles(SETTLES_FIRST, watch->behind) | agreed;
}

/* SETTINGS with one at least; WINDOW_UPDATE and the acknowledgement of the client's may follow. */
static __always_inline bool are_server_settings(u32 record, u32 expansion)
{
	u32 plain = record - expansion;

	return record > expansion && (is_list_of_settings(plain, SERVER_SETTINGS_LEAST, OTHER_SETTINGS - 1) ||
				      (plain >= SERVER_SETTINGS_LEAST + FRAME_BYTES && may_settle(plain)));
}

/*
 * Does the running send have a record that is as long as a server's settings? A global function: the verifier
 * works through its loop once a program.
 */
__noinline u32 may_send_settings(u32 bytes)
{
	u32 end = 0;

	for (u32 i = 0; i < SETTLING_RECORDS && end + TLS_RECORD_HEADER <= bytes; i++) {
		u32 record = record_header(end), length = TLS_RECORD_HEADER + (record >> 8);

		if ((u8)record != TLS_APPLICATION_DATA)
			return false;
		if (are_server_settings(length, TLS13_EXPANSION) ||
		    are_server_settings(length, TLS13_EXPANSION_PADDED))
			return true;
		end += length;
	}
	return false;
}

/* Something is sent, before which nothing was asked, or what may be settings alone. */
static __always_inline void note_server_settings(struct socket_state *st, u32 bytes)
{
	if (st->settles && st->settles <= SETTLES_PADDED && may_send_settings(bytes))
		st->settles |= st->settles == SETTLES_FIRST ? SETTLES_UNASKED : SETTLES_AGREED;
}

/* As one that was read after so many others, and is that much longer than the acknowledgement. */
static __always_inline bool acknowledges(u32 state, u32 agreed, u32 expansion)
{
	if (expansion != TLS13_EXPANSION && expansion != TLS13_EXPANSION_PADDED)
		return false;
	if (agreed & SETTLES_UNASKED)
		return state >= SETTLES_ALONE;
	return agreed && state == (expansion == TLS13_EXPANSION ? SETTLES_ALONE : SETTLES_PADDED);
}

/*
 * So many bytes are read behind the client's part of the handshake.
 * @return enum settles; or, from bit 8 on, by how much records are longer than their data: it is HTTP/2
 * A global function, too.
 */
__noinline u32 follow_first_records(u32 settles, u32 bytes)
{
	u32 agreed = settles & ~SETTLES_STATES, state = settles & SETTLES_STATES, end = 0;

	/* What does not begin with a record is the rest of one. */
	for (u32 i = 0; i < SETTLING_RECORDS && end + TLS_RECORD_HEADER <= bytes && state; i++) {
		u32 record = record_header(end), length = TLS_RECORD_HEADER + (record >> 8);
		u32 expansion = length - FRAME_BYTES;

		if ((u8)record != TLS_APPLICATION_DATA)
			break;
		if (acknowledges(state, agreed, expansion))
			return expansion << 8;
		state = next_settles(state, length);
		end += length;
	}
	return state ? state | agreed : SETTLES_NOT;
}

/* A turn begins with a read of so many bytes, or goes on. */
static __always_inline void find_first_settings(struct socket_state *st, u32 bytes, bool begins)
{
	u8 before = st->settles & SETTLES_STATES;
	u32 found;

	if (before == SETTLES_NOT)
		return;
	found = follow_first_records(st->settles, bytes);
	if (begins && !(found >> 8) && before != SETTLES_FIRST)
		found = SETTLES_NOT;
	st->settles = found;
	if (!(found >> 8))
		return;
	st->many = true;
	/* Else a message that only looks like it would be lost. */
	if (before == (found >> 8 == TLS13_EXPANSION ? SETTLES_ALONE : SETTLES_PADDED))
		st->expansion = found >> 8;
}

/* Is the acknowledgement of settings all that the open turn brought? */
static __always_inline bool only_acknowledges_settings(const struct socket_state *st)
{
	const union record_watch watch = {.all = st->records};

	return st->expansion && watch.flags & WATCH_PROOF && !watch.rest && watch.messages == 1 &&
	       watch.behind + TLS_RECORD_HEADER == FRAME_BYTES + st->expansion;
}
