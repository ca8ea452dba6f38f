/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * HTTP's interim responses (RFC 9110, 15.2): a client that expects "100 Continue" sends the body of its
 * request when it has that. The reply comes later.
 *
 * Told by the first bytes of a message that is too short for a response behind it: "HTTP/1.1 204" and two
 * ends of lines take 16 bytes, as does "HTTP/1.1 100". "103 Early Hints" has fields, and "101 Switching
 * Protocols" is a reply. Under TLS nothing tells one from any short reply.
 */
#pragma once

#include "socket_buffers.bpf.h"

#define INTERIM_LEAST 16
#define INTERIM_MOST 31
#define INTERIM_BYTES 12
/* "HTTP/1.1", then " 100" or " 102" (Processing, RFC 2518, 10.1). */
#define HTTP_VERSION 0x312e312f50545448ULL
#define HTTP_CONTINUE 0x30303120U
#define HTTP_PROCESSING 0x32303120U

/* Of what the running call has read or sent. A global function: verified once a program. */
__noinline u32 begins_interim_response(void)
{
	const void *buffer = first_buffer(NULL);
	struct {
		u64 version;
		u32 status;
		u32 pad;
	} head = {};

	if (!buffer || bpf_probe_read_user(&head, INTERIM_BYTES, buffer))
		return false;
	return head.version == HTTP_VERSION &&
	       (head.status == HTTP_CONTINUE || head.status == HTTP_PROCESSING);
}

static __always_inline bool is_interim_response(u32 bytes)
{
	return bytes - INTERIM_LEAST <= INTERIM_MOST - INTERIM_LEAST && begins_interim_response();
}
