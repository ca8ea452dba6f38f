/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * HTTP's interim responses (RFC 9110, 15.2): a client that expects "100 Continue" sends the body of its
 * request when it has that. The reply comes later.
 *
 * Told by the first bytes of a message that is too short for a response behind it: "HTTP/1.1 204" and two
 * ends of lines take 16 bytes, as does "HTTP/1.1 100". "103 Early Hints" has fields, and "101 Switching
 * Protocols" is a reply.
 *
 * Under TLS a client that offers HTTP/1.1 (ALPN, RFC 7301) speaks HTTP: there "HTTP/1.1 100 Continue" is told
 * by the length of its record. Hardly any response is as short, but messages of a WebSocket and HTTP/2's
 * frames may be: what answers a short message is a reply, and so is the second of that length in a turn.
 * Where the kernel has the keys (kTLS) its text tells.
 */
#pragma once

#include "socket_buffers.bpf.h"
#include "socket_records.bpf.h"
#include "socket_state.bpf.h"
#include "socket_tls.bpf.h"

#define INTERIM_LEAST 16
#define INTERIM_MOST 31
#define INTERIM_BYTES 12
/* "HTTP/1.1", then " 100" or " 102" (Processing, RFC 2518, 10.1). */
#define HTTP_VERSION 0x312e312f50545448ULL
#define HTTP_CONTINUE 0x30303120U
#define HTTP_PROCESSING 0x32303120U

/* "HTTP/1.1 100 Continue" and two ends of lines; with what a record adds, beside its header. */
#define CONTINUE_BYTES 25
#define CONTINUE_TLS13 (CONTINUE_BYTES + 17)
#define CONTINUE_TLS12_GCM (CONTINUE_BYTES + 24)
#define CONTINUE_TLS12_CHACHA20 (CONTINUE_BYTES + 16)
/* No request that expects it is shorter: a method, a host, a length, and that it does. */
#define EXPECTING_LEAST 80

enum interim { INTERIM_NOT, INTERIM_WHOLE, INTERIM_HEADER /* of its record */ };

static __always_inline u32 interim_of_record(u32 record, u32 bytes)
{
	u32 length = record >> 8;

	if ((u8)record != TLS_APPLICATION_DATA ||
	    (length != CONTINUE_TLS13 && length != CONTINUE_TLS12_GCM && length != CONTINUE_TLS12_CHACHA20))
		return INTERIM_NOT;
	if (bytes == TLS_RECORD_HEADER)
		return INTERIM_HEADER;
	return bytes == TLS_RECORD_HEADER + length ? INTERIM_WHOLE : INTERIM_NOT;
}

/*
 * Is what the running call has read or sent, which is so long, an interim response? enum interim. A global
 * function, of plain numbers: verified once a program.
 * @param http1 the connection is in TLS, and its client offers HTTP/1.1
 * @param asked bytes of the request so far
 */
__noinline u32 find_interim(u32 bytes, u32 http1, u32 asked)
{
	const void *buffer;
	struct {
		u64 version;
		u32 status;
		u32 pad;
	} head = {};

	if (http1 && bytes <= TLS_RECORD_HEADER + CONTINUE_TLS12_GCM) {
		u32 record = record_header(0);

		/* Else the kernel has the keys, or it is the rest of a record. */
		if (record)
			return asked >= EXPECTING_LEAST ? interim_of_record(record, bytes) : INTERIM_NOT;
	}
	if (bytes - INTERIM_LEAST > INTERIM_MOST - INTERIM_LEAST)
		return INTERIM_NOT;
	buffer = first_buffer(NULL);
	if (!buffer || bpf_probe_read_user(&head, INTERIM_BYTES, buffer))
		return INTERIM_NOT;
	return head.version == HTTP_VERSION &&
	       (head.status == HTTP_CONTINUE || head.status == HTTP_PROCESSING);
}

/*
 * Is so much, which is sent where a turn is open, no reply to that? Under TLS one of a turn is none: a second
 * one shows that what is as long are replies, here and from now on.
 */
static __always_inline bool is_interim_response(struct socket_state *st, u32 bytes)
{
	bool http1 = st->http1 & !st->many;

	if (find_interim(bytes, http1, st->turn_bytes) != INTERIM_WHOLE)
		return false;
	if (http1 && st->noted & NOTED_INTERIM) {
		st->http1 = false;
		return false;
	}
	st->noted |= NOTED_INTERIM;
	return true;
}

/*
 * Is so much, which a client has read where a call is open, no answer to that? OpenSSL reads the header of a
 * record by itself.
 */
static __always_inline bool is_interim_answer(struct socket_state *st, u32 bytes)
{
	bool http1 = st->http1 & !st->many & ((st->tls == TLS_CONNECTED) | st->asks);
	u32 found = find_interim(bytes, http1, st->turn_bytes);

	if (st->interim) {
		st->interim = false;
		st->noted |= NOTED_INTERIM;
		return true;
	}
	if (found == INTERIM_NOT)
		return false;
	if (http1 && st->noted & NOTED_INTERIM) {
		st->http1 = false;
		return false;
	}
	if (found == INTERIM_HEADER)
		st->interim = true;
	else
		st->noted |= NOTED_INTERIM;
	return true;
}
