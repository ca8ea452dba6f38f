/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Session tickets (RFC 8446, 4.6.1): what a server sends first behind the client's last flight is mostly no
 * reply, though a request came with that flight.
 */
#pragma once

#include "socket_interim.bpf.h"
#include "socket_records.bpf.h"
#include "socket_settings.bpf.h"
#include "socket_state.bpf.h"
#include "socket_tls.bpf.h"

/* change_cipher_spec (6) and Finished with SHA-384 under TLS 1.3 (5 + 4 + 48 + 1 + 16), rounded up. */
#define LAST_FLIGHT_BYTES 96
/* What is longer is no session ticket. */
#define TICKET_MOST 2048
/* A send has so many tickets at most. OpenSSL gives two, others one. */
#define TICKETS_MOST 8
/* A ticket takes a server no longer; a send that comes so long after it is none of the same moment. */
#define TICKET_PROMPT_NS 5000000ULL
#define TICKET_PAUSE_NS 1000000ULL
/* The same of several, which their lengths tell, too. */
#define TICKETS_PROMPT_NS 20000000ULL

/*
 * Of how many records does the running send consist, which has so many bytes, if all are as long, and as
 * tickets may be? 0: of others. A global function: the verifier works through its loop once a program.
 */
__noinline u32 ticket_records(u32 bytes)
{
	u32 first = record_header(0), record = first, end = 0;

	if ((u8)first != TLS_APPLICATION_DATA || first >> 8 < TICKET_RECORD_LEAST || first >> 8 > TICKET_MOST)
		return 0;
	for (u32 records = 1; records <= TICKETS_MOST && record == first; records++) {
		end += TLS_RECORD_HEADER + (first >> 8);
		if (end >= bytes)
			return end == bytes ? records : 0;
		record = record_header(end);
	}
	return 0;
}

/*
 * A turn that began with the client's last flight is answered by a send of so many bytes: did it bring a
 * request, too? A goodbye may come right behind the flight, and be answered by one, or by session tickets. A
 * library may put all of its messages into one record, in which Finished is not seen: then it is a request if
 * there is another one.
 */
static __always_inline bool flight_brings_request(const struct socket_state *st, u32 bytes)
{
	const union record_watch watch = {.all = st->records};

	if (records_were_followed(&watch) && watch.flags & WATCH_FINISHED)
		return (watch.behind > CLOSE_NOTIFY_TLS13 && watch.behind != CLOSE_NOTIFY_PADDED_TWICE) ||
		       (watch.flags & WATCH_EARLY && watch.flags & WATCH_EARLY_END);
	if (records_were_followed(&watch))
		return watch.messages > 1;
	return st->turn_bytes > LAST_FLIGHT_BYTES + CLOSE_NOTIFY_TLS13 ||
	       (st->turn_bytes > LAST_FLIGHT_BYTES && bytes != CLOSE_NOTIFY_TLS13);
}

/*
 * Does the server send tickets, or an interim response, and nothing else, where a request came with the
 * client's last flight? Several records of one length are no reply. Then the turn goes on.
 */
static __always_inline bool only_brings_tickets(struct socket_state *st, struct socket_shard *shard,
						u32 bytes)
{
	const union record_watch watch = {.all = st->records};

	if (st->tls != TLS_FLIGHT || st->expansion || !records_were_followed(&watch) ||
	    !flight_brings_request(st, bytes) ||
	    (ticket_records(bytes) < 2 && !is_interim_response(st, bytes)))
		return false;
	note_first_settings(st, &watch);
	st->tls = TLS_CONNECTED;
	st->records = 0;
	if (!st->close_unseen && !st->counted_late)
		add(&shard->opened, 1);
	return true;
}

/*
 * Does the server's part of a handshake end with a ticket behind Finished (Go, which has records for each
 * message)? Then none comes later. Of several sends the last one tells. A global function, too.
 */
__noinline u32 ends_with_ticket(u32 bytes)
{
	u32 record = 0, end = 0, encrypted = 0, length;

	for (u32 records = 0; records < TICKETS_MOST && end + TLS_RECORD_HEADER <= bytes; records++) {
		record = record_header(end);
		if (!record)
			return false;
		encrypted += (u8)record == TLS_APPLICATION_DATA;
		end += TLS_RECORD_HEADER + (record >> 8);
	}
	length = record >> 8;
	return encrypted > 1 && length >= TICKET_RECORD_LEAST && length <= TICKET_MOST &&
	       !is_finished(record, length);
}

/* The same at a client that has asked before it read them: do they answer its first call? */
static __always_inline bool is_only_tickets(const struct socket_state *st, u32 bytes)
{
	return st->tls == TLS_CONNECTED && st->sampler <= 1 && st->call_open && ticket_records(bytes) > 1;
}

/*
 * The open turn is answered a second time, and nothing was read since the first: was that a single ticket? It
 * was sent at once then, and the reply some time later.
 */
static __always_inline bool follows_ticket(const struct socket_state *st, u64 now)
{
	return elapsed(st->last_read, st->first_reply) < TICKET_PROMPT_NS &&
	       elapsed(st->first_reply, now) > TICKET_PAUSE_NS;
}

/* The same before anything is sent. */
static __always_inline bool has_asked_with_flight(const struct socket_state *st)
{
	const union record_watch watch = {.all = st->records};

	return (!records_were_followed(&watch) || watch.flags & WATCH_FINISHED) &&
	       flight_brings_request(st, 0);
}

/*
 * Two sends or more, all as long, follow the client's last flight at once (got_tickets()): were they tickets?
 * A reply comes behind those, unless they came with the server's part of the handshake.
 */
static __always_inline bool brought_tickets(const struct socket_state *st)
{
	return !st->ticketed && elapsed(st->last_read, st->first_reply) < TICKETS_PROMPT_NS;
}

/*
 * Has all of the early data come, which the server reads behind its answer to the hello, and nothing else?
 * Tickets are sent behind Finished only: what the server sends now is the reply.
 */
static __always_inline bool ends_early_data(const union record_watch *watch)
{
	return records_were_followed(watch) && watch->messages && watch->flags & WATCH_EARLY_END &&
	       !(watch->flags & WATCH_FINISHED);
}

/*
 * What a server sends behind the client's last flight may be tickets, though a request came with that: a
 * large one, of which more is still to be read. If more was waiting, or had not come yet, it surely was: the
 * request is what is read next.
 */
static __always_inline bool end_flight(struct socket_state *st, u32 bytes)
{
	const union record_watch watch = {.all = st->records};
	union record_watch answered = {.first_send = bytes};

	if (ends_early_data(&watch)) {
		answered.unfinished = answered.counted = answered.early = true;
		st->tls = TLS_ASKED;
		st->records = answered.all;
		return true;
	}
	st->tls = TLS_CONNECTED;
	note_first_settings(st, &watch);
	if (!flight_brings_request(st, bytes))
		return false;
	answered.unfinished = st->overlap || (records_were_followed(&watch) && watch.rest);
	answered.counted = !answered.unfinished && bytes > TICKET_MOST;
	answered.alone = !st->ticketed && ticket_records(bytes) == 1;
	st->tls = answered.unfinished || answered.counted ? TLS_ASKED : TLS_TICKET;
	st->records = answered.all;
	/* HTTP/2's settings came before the request. */
	st->opens = 0;
	return answered.counted;
}

/*
 * More is sent behind the flight, in the same turn. Tickets are sent one by one, and all are as long; what
 * else precedes a reply are HTTP/2's settings, or an interim response.
 * @return whether a request that has not been counted yet is answered: at st->first_reply
 */
static __always_inline bool replies_behind_flight(struct socket_state *st, u32 bytes, u64 now)
{
	union record_watch answered = {.all = st->records};

	if (answered.early)
		return false;
	if ((bytes == answered.first_send && bytes <= TICKET_MOST) ||
	    (st->expansion && bytes > st->expansion && may_settle(bytes - st->expansion)) ||
	    is_interim_response(st, bytes)) {
		answered.unfinished = true;
		st->records = answered.all;
		st->tls = TLS_ASKED;
		return false;
	}
	if (st->tls == TLS_ASKED ? !answered.counted : answered.alone && follows_ticket(st, now))
		st->first_reply = now;
	st->tls = TLS_CONNECTED;
	st->records = 0;
	return !answered.counted;
}

/*
 * BoringSSL sends its tickets, a record of them, with whatever it sends first, be it a goodbye, the answer to
 * the client's.
 */
static __always_inline bool is_answered_with_tickets(const struct socket_state *st, u32 bytes)
{
	u32 record;

	if (st->first_reply || st->turn_bytes != CLOSE_NOTIFY_TLS13)
		return false;
	record = record_header(0);
	return (u8)record == TLS_APPLICATION_DATA && record >> 8 <= TICKET_MOST &&
	       bytes == (record >> 8) + TLS_RECORD_HEADER + CLOSE_NOTIFY_TLS13;
}
