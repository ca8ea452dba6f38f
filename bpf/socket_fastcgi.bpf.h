/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * The end of a FastCGI request. Its body ends with a record of its own, also if there is none. A server that
 * keeps the connection reads that when it has replied: php-fpm, if the script has not asked for the body.
 * Nothing will answer it, and the next request looked like another one within it.
 */
#pragma once

#include "socket_buffers.bpf.h"
#include "socket_state.bpf.h"

#define FASTCGI_HEADER_BYTES 8
/* Version 1, FCGI_STDIN; the length in bytes four and five is 0. */
#define FASTCGI_STDIN 0x0501
#define FASTCGI_LENGTH_MASK 0xffff00000000ULL

/* A global function: verified once a program. */
__noinline u32 ends_fastcgi_request(u32 bytes)
{
	const void *buffer = bytes == FASTCGI_HEADER_BYTES ? first_buffer(NULL) : NULL;
	u64 header = 0;

	if (!buffer || bpf_probe_read_user(&header, sizeof(header), buffer))
		return false;
	return (u16)header == FASTCGI_STDIN && !(header & FASTCGI_LENGTH_MASK);
}

/* What is read after a reply came with the request: is it the end of that? */
static __always_inline bool is_end_of_request(u64 arrival, u32 bytes)
{
	return !arrival && ends_fastcgi_request(bytes);
}
