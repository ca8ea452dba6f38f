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
 * A server that puts all messages of its handshake into one record (BoringSSL, rustls) does not show that it
 * chose HTTP/2. Its client may, under TLS 1.3: what it sends first, in a record of its own, is as long as
 * preface and settings, and the next record has nothing but an acknowledgement of the server's. What else
 * begins so long goes on with more.
 */
enum settles {
	SETTLES_NOT,
	SETTLES_FIRST, /* nothing was read behind the client's part of the handshake */
	SETTLES_NEXT,  /* its first record is as long as settings */
};

/* The client's last flight ends, and is followed by the records of `watch`. */
static __always_inline void note_first_settings(struct socket_state *st, const union record_watch *watch)
{
	if (st->settles != SETTLES_FIRST || !records_were_followed(watch) || !(watch->flags & WATCH_FINISHED))
		st->settles = SETTLES_NOT;
	else if (watch->run)
		st->settles =
		    watch->run == 1 && !watch->rest && is_first_flight(plain_bytes(watch, TLS13_EXPANSION))
			? SETTLES_NEXT
			: SETTLES_NOT;
}

/* A turn begins with a read of so many bytes. */
static __always_inline void find_first_settings(struct socket_state *st, u32 bytes)
{
	u64 known = bytes;
	u32 record, end;

	if (st->settles == SETTLES_NOT || !first_buffer(&known) || known < bytes)
		return;
	record = record_header(0);
	if (st->settles == SETTLES_FIRST) {
		st->settles = SETTLES_NOT;
		end = TLS_RECORD_HEADER + (record >> 8);
		if ((u8)record != TLS_APPLICATION_DATA || !is_first_flight(end - TLS13_EXPANSION))
			return;
		st->settles = SETTLES_NEXT;
		if (bytes < end + TLS_RECORD_HEADER)
			return;
		record = record_header(end);
	}
	st->settles = SETTLES_NOT;
	if ((u8)record != TLS_APPLICATION_DATA ||
	    TLS_RECORD_HEADER + (record >> 8) != FRAME_BYTES + TLS13_EXPANSION)
		return;
	st->many = true;
	st->expansion = TLS13_EXPANSION;
}

/* Is the acknowledgement of settings all that the open turn brought? */
static __always_inline bool only_acknowledges_settings(const struct socket_state *st)
{
	const union record_watch watch = {.all = st->records};

	return st->expansion && watch.flags & WATCH_PROOF && !watch.rest && watch.messages == 1 &&
	       watch.behind + TLS_RECORD_HEADER == FRAME_BYTES + st->expansion;
}
