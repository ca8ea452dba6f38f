/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Data that may precede TLS without being answered. A proxy's header names the client of a connection (PROXY
 * protocol): version 1 is a line of text of at most 107 bytes, version 2 is a signature, two bytes and the
 * length of what follows. A client of MySQL requests TLS (SSLRequest) in its first packet, of 32 bytes, where
 * a log-in is longer.
 */
#pragma once

#include "socket_buffers.bpf.h"

#define PROXY_LINE_BYTES 107
#define PROXY_PART 36U
/* "PROX" and the signature of version 2, "\r\n\r\n\0\r\nQUIT\n". */
#define PROXY_LINE 0x584f5250
#define PROXY_SIGNATURE 0x510a0d000a0d0a0dULL
#define PROXY_SIGNATURE_END 0x0a544955
/* The packet's header: its length, and that it is the second one of the connection. */
#define MYSQL_WISH 0x01000020
#define MYSQL_WISH_BYTES 36

struct proxy_signature {
	u64 begin;
	u32 end;
	u16 command;
	u16 length; /* of what follows, in network order */
};

/* Are these the first eight bytes of such a header? */
static __always_inline bool is_proxy_opening(u64 opening)
{
	return (u32)opening == PROXY_LINE || opening == PROXY_SIGNATURE;
}

/* In parts, for all functions of a call together have 512 bytes of stack (tests/bench/stack). */
static __always_inline u32 proxy_line(const void *buffer, u32 bytes)
{
	for (u32 from = 0; from < PROXY_LINE_BYTES && from < bytes; from += PROXY_PART) {
		u8 part[PROXY_PART] = {};
		u64 length = bytes - from;

		/* Kept in one register: verifiers up to 6.1 forget the bound of a copy. */
		barrier_var(length);
		if (length > PROXY_PART)
			length = PROXY_PART;
		if (bpf_probe_read_user(part, length, buffer + from))
			return 0;
		for (u32 i = 0; i < PROXY_PART; i++)
			if (part[i] == '\n')
				return from + i + 1;
	}
	return bytes + 1;
}

/*
 * How long it is, if the running call has read such a thing first: 0 if it is none; more than `bytes` if its
 * end has not been read. A global function: the verifier works through its loop once a program.
 */
__noinline u32 proxy_header(u32 bytes)
{
	struct proxy_signature signature = {};
	const void *buffer = first_buffer(NULL);
	u32 head = 0;

	if (!buffer || bytes < sizeof(head) || bpf_probe_read_user(&head, sizeof(head), buffer))
		return 0;
	if (head == MYSQL_WISH)
		return MYSQL_WISH_BYTES;
	/* "PROXY UNKNOWN" is shorter than the signature. */
	if (head == PROXY_LINE)
		return proxy_line(buffer, bytes);
	if (bytes < sizeof(signature) || bpf_probe_read_user(&signature, sizeof(signature), buffer))
		return 0;
	if (signature.begin == PROXY_SIGNATURE && signature.end == PROXY_SIGNATURE_END)
		return sizeof(signature) + bpf_ntohs(signature.length);
	return 0;
}
