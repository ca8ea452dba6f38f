/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Signs of life: now and then a server asks whether its client still is there, and the client echoes that. An
 * echo is no request: what the server says next, seconds later, would look like the reply.
 *
 * In the clear a WebSocket's are told by their frames (socket_brokers.bpf.h). Under TLS, and of other
 * protocols, lengths and times tell. The server breaks a silence by a short send that nobody asked for; the
 * client's next message is as long (IRC's PONG, HTTP/2's PING, AMQP's heartbeats), or longer by the mask that
 * only clients use (WebSocket, RFC 6455, 5.1 and 5.5.3); and nothing follows it soon. A request that happens
 * to be as long is answered sooner.
 */
#pragma once

#include "socket_records.bpf.h"
#include "socket_state.bpf.h"

#define SIGN_SILENCE_NS 1000000000ULL
/* What follows an echo sooner may be its answer. */
#define SIGN_ANSWERED_NS 500000000ULL
/* A ping has at most 125 bytes beside its header of two (RFC 6455, 5.5); a record has up to 29 more. */
#define SIGN_MOST 160
#define SIGN_MASK_BYTES 4

/* Something is sent unasked: does it break a silence? A greeting breaks none. */
static __always_inline void note_sign(struct socket_state *st, u64 last_send, u64 now, u32 bytes)
{
	st->gave_sign = bytes <= SIGN_MOST && last_send && elapsed(last_send, now) >= SIGN_SILENCE_NS &&
			st->last_read && elapsed(st->last_read, now) >= SIGN_SILENCE_NS;
}

static __always_inline bool is_as_long_as_echo(u32 sent, u32 bytes)
{
	return bytes == sent || bytes == sent + SIGN_MASK_BYTES;
}

/* A turn begins behind a sign: may it be the echo? A library may read the header of a record by itself. */
static __always_inline bool may_echo_sign(const struct socket_state *st, u32 bytes)
{
	u32 record;

	if (!st->gave_sign)
		return false;
	if (bytes == TLS_RECORD_HEADER) {
		record = record_header(0);
		if ((u8)record == TLS_APPLICATION_DATA)
			bytes += record >> 8;
	}
	return is_as_long_as_echo(st->sent_bytes, bytes);
}

/*
 * More is sent, or read, in a turn that may be an echo, a pause after that came: is it one?
 * @param sent by the send before the turn
 */
static __always_inline bool is_echo(const struct socket_state *st, u32 sent, u64 pause)
{
	return st->may_be & DOUBT_ECHO && is_as_long_as_echo(sent, st->turn_bytes) &&
	       pause >= SIGN_ANSWERED_NS;
}
