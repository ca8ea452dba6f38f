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
 * by the length of its record. No response is as short but one without any field, and the messages of a
 * WebSocket: what answers a short message is a reply.
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

static __always_inline u32 interim_of_record(u32 bytes)
{
	u32 record = record_header(0), length = record >> 8;

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
 * @param expects there, one may come
 */
__noinline u32 find_interim(u32 bytes, u32 http1, u32 expects)
{
	const void *buffer;
	struct {
		u64 version;
		u32 status;
		u32 pad;
	} head = {};

	if (http1) {
		if (!expects || bytes > TLS_RECORD_HEADER + CONTINUE_TLS12_GCM)
			return INTERIM_NOT;
		return interim_of_record(bytes);
	}
	if (bytes - INTERIM_LEAST > INTERIM_MOST - INTERIM_LEAST)
		return INTERIM_NOT;
	buffer = first_buffer(NULL);
	if (!buffer || bpf_probe_read_user(&head, INTERIM_BYTES, buffer))
		return INTERIM_NOT;
	return head.version == HTTP_VERSION &&
	       (head.status == HTTP_CONTINUE || head.status == HTTP_PROCESSING);
}

/* Is so much, which is sent where a turn is open, no reply to that? */
static __always_inline bool is_interim_response(const struct socket_state *st, u32 bytes)
{
	return find_interim(bytes, st->http1, !st->many & (st->turn_bytes >= EXPECTING_LEAST)) ==
	       INTERIM_WHOLE;
}

/*
 * Is so much, which a client has read where a call is open, no answer to that? OpenSSL reads the header of a
 * record by itself.
 */
static __always_inline bool is_interim_answer(struct socket_state *st, u32 bytes)
{
	u32 found = find_interim(bytes, st->http1, !st->many & ((st->tls == TLS_CONNECTED) | st->asks));
	bool rest = st->interim;

	st->interim = !rest & (found == INTERIM_HEADER);
	return rest | (found != INTERIM_NOT);
}
