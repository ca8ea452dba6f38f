/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Clients that half-close TLS: they say goodbye (close_notify, RFC 8446, 6.1) within an open call, and then
 * read what answers it. The goodbye moves none of the call's times. If nothing but the server's goodbye
 * comes, the call has no answer.
 *
 * TLS 1.2 shows the type of both. Under TLS 1.3 a message of two bytes looks alike (MQTT's PINGREQ). If what
 * comes next is longer, it answers the call. If it is as short, it is a goodbye, unless the connection goes
 * on: then it answers that message, behind one that nothing answers. Or the server's goodbye follows it: then
 * it is a short answer.
 */
#pragma once

#include "socket_state.bpf.h"
#include "socket_tls.bpf.h"

/*
 * Is a call open when a client sends so many bytes? What the handshake takes is none. A message as short as a
 * goodbye is one, since something follows it: of goodbyes Java alone says two.
 */
static __always_inline bool has_asked(const struct socket_state *st, bool shakes_hands, u32 bytes)
{
	if (!st->call_open)
		return false;
	if (st->tls == TLS_PADDED)
		return bytes != CLOSE_NOTIFY_PADDED;
	return st->tls == TLS_CONNECTED || st->tls == TLS_SHORT || (shakes_hands && st->asks);
}

/* A client says within the open call what may be a goodbye. @param now 0 if it surely is one */
static __always_inline void part_within_call(struct socket_state *st, u64 now)
{
	st->may_be |= DOUBT_PARTING;
	st->late_arrival = now;
}

/* It was a message, and the call was this one. */
static __always_inline void go_on_with_message(struct socket_state *st)
{
	if (st->may_be & DOUBT_PARTING && st->late_arrival)
		st->last_send = st->late_arrival;
}

/* Is what a client has read nothing but what may be the server's goodbye, or the header of that? */
static __always_inline bool reads_goodbye(const struct tcp_sock *tp, u32 record, u32 bytes)
{
	if (bytes == ALERT_BYTES)
		return has_kernel_tls(tp);
	if (!record)
		return may_be_goodbye(bytes);
	return (u8)record == TLS_APPLICATION_DATA && is_short_record(record >> 8) &&
	       (bytes <= (record >> 8) + TLS_RECORD_HEADER || bytes == CLOSE_NOTIFY_PADDED_TWICE);
}

/*
 * The call is open within which a client may have said goodbye, and something came back at `back`. @return
 * whether that does not answer it, or is in doubt: enum tls_state tells
 */
static __always_inline bool leaves_parted_call(struct socket_state *st, const struct tcp_sock *tp, u64 back,
					       u32 bytes)
{
	u32 record = record_header(0);

	if ((u8)record == TLS_ALERT_RECORD) {
		st->tls = TLS_ALERT;
	} else if (st->late_arrival && reads_goodbye(tp, record, bytes)) {
		st->tls = TLS_HELD;
		st->first_reply = back;
		return true;
	} else if (st->tls == TLS_PADDED) {
		/* Java says two. */
		go_on_with_message(st);
	}
	st->may_be &= ~DOUBT_PARTING;
	return st->tls == TLS_ALERT;
}

/*
 * More is read behind what may be the server's goodbye: is it a goodbye, and was that a short answer? Java's
 * consists of two records.
 */
static __always_inline bool was_short_answer(const struct socket_state *st)
{
	u32 record;

	if (st->tls != TLS_HELD || !(st->may_be & DOUBT_PARTING))
		return false;
	record = record_header(0);
	return (u8)record == TLS_APPLICATION_DATA &&
	       (record >> 8 == SHORT_RECORD || record >> 8 == SHORT_RECORD_CCM_8);
}
