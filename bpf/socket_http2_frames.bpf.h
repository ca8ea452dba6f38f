/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* What HTTP/2 looks like: its preface, and the header of a frame (RFC 9113, 3.4 and 4.1). */
#pragma once

#include "socket_buffers.bpf.h"
#include "socket_proxy.bpf.h"
#include "socket_state.bpf.h"

#define HTTP2_HEADER 9
/* "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" (RFC 9113, 3.4): its first four bytes, and all in words of eight. */
#define HTTP2_PREFACE 0x20495250
#define HTTP2_PREFACE_WORDS {0x5448202a20495250ULL, 0x0a0d302e322f5054ULL, 0x0a0d0a0d4d530a0dULL}
#define HTTP2_PREFACE_BYTES 24
/* So much of it has to be in the read that it begins in. */
#define HTTP2_PREFACE_LEAST 4
/* Larger frames need a setting (RFC 9113, 6.5.2): a header that says so may be an accident. */
#define HTTP2_FRAME_BYTES (1 << 14)

enum {
	HTTP2_DATA = 0,
	HTTP2_HEADERS = 1,
	HTTP2_PRIORITY = 2,
	HTTP2_RST_STREAM = 3,
	HTTP2_SETTINGS = 4,
	HTTP2_PUSH_PROMISE = 5,
	HTTP2_PING = 6,
	HTTP2_GOAWAY = 7,
	HTTP2_WINDOW_UPDATE = 8,
	HTTP2_CONTINUATION = 9,
	HTTP2_LAST_TYPE = 0x10, /* PRIORITY_UPDATE (RFC 9218); 0xa and 0xc are ALTSVC and ORIGIN */
};

/* Flags of frames that have a field section, or data (RFC 9113, 6.1 and 6.2). */
#define HTTP2_END_STREAM 0x1
#define HTTP2_PADDED 0x8
#define HTTP2_PRIORITISED 0x20

/*
 * The first byte of a field (RFC 7541, 6.1 and 6.2): it is in the dynamic table, behind 61 of the static one;
 * a literal that goes there, by a name below 16; others have the upper four bits 0 or 1. Indices of
 * ":status".
 */
#define HPACK_DYNAMIC (0x80 + 62)
#define HPACK_INDEXED_LATER 0x40
#define HPACK_STATUS 8
#define HPACK_STATUSES 7
/* A flag of a literal's length. */
#define HPACK_HUFFMAN 0x80
/* So much of a reply's field section tells whether it is an interim response. */
#define HTTP2_FIELDS_BYTES 3

/* One direction of a connection: where the next header is, and what came of it. */
struct http2_cursor {
	u32 skip; /* bytes up to the next frame's header */
	u8 have;  /* bytes of a header that an operation has cut in two */
	bool in_step;
	u8 fields[4];  /* what follows the header, of a frame of HEADERS that is sent; else of an earlier one
			*/
	u8 header[32]; /* 9 used: room for what the verifier thinks could be written */
};

static __always_inline u32 http2_length(const u8 *h)
{
	return (u32)h[0] << 16 | (u32)h[1] << 8 | h[2];
}

static __always_inline u32 http2_stream_id(const u8 *h)
{
	return (u32)(h[5] & 0x7f) << 24 | (u32)h[6] << 16 | (u32)h[7] << 8 | h[8];
}

/* Can it be the header of a frame? Which belong to a stream, which to the connection, how long: RFC 9113, 6.
 */
static __always_inline bool http2_is_header(const u8 *h)
{
	u32 length = http2_length(h);
	u32 id = http2_stream_id(h);

	if (h[5] & 0x80)
		return false;
	switch (h[3]) {
	case HTTP2_DATA:
	case HTTP2_HEADERS:
	case HTTP2_PUSH_PROMISE:
	case HTTP2_CONTINUATION:
		return id;
	case HTTP2_PRIORITY:
		return id && length == 5;
	case HTTP2_RST_STREAM:
		return id && length == 4;
	case HTTP2_SETTINGS:
		return !id && length % 6 == 0;
	case HTTP2_PING:
		return !id && length == 8;
	case HTTP2_GOAWAY:
		return !id && length >= 8;
	case HTTP2_WINDOW_UPDATE:
		return length == 4;
	default:
		return h[3] <= HTTP2_LAST_TYPE;
	}
}

#if MAY_LOOP

/*
 * Does the operation begin with the preface, or with a frame's header that is no accident? 0 if not, else one
 * more than the bytes to skip before the first header. A global function: verified once a program.
 */
__noinline u32 http2_begins(u64 bytes, u32 direction)
{
	const void *buffer = first_buffer(&bytes);
	u8 header[HTTP2_HEADER];
	u32 word;

	if (!buffer || bytes < sizeof(word) || bpf_probe_read_user(&word, sizeof(word), buffer))
		return 0;
	if (word == HTTP2_PREFACE)
		return direction == TACHO_RECEIVE ? 1 + HTTP2_PREFACE_BYTES : 0;
	if (bytes < HTTP2_HEADER || bpf_probe_read_user(header, HTTP2_HEADER, buffer))
		return 0;
	return http2_length(header) <= HTTP2_FRAME_BYTES && header[3] <= HTTP2_WINDOW_UPDATE &&
	       http2_is_header(header);
}

/* The flags of HEADERS (RFC 9113, 6.2), and that of them which one frame without continuation has. */
#define HTTP2_HEADERS_FLAGS 0x2d
#define HTTP2_END_HEADERS 0x4
/* Frames in front of a request's, in the read that begins with them; the longest has four settings. */
#define HTTP2_FRAMES_BEFORE 3
#define HTTP2_FRAME_BEFORE_BYTES 24

/* A frame that asks for nothing, of which hardly more than its length can be wrong. */
static __always_inline bool http2_is_sign_of_life(const u8 *h)
{
	return h[3] >= HTTP2_PRIORITY && h[3] <= HTTP2_WINDOW_UPDATE && h[3] != HTTP2_PUSH_PROMISE &&
	       http2_is_header(h) && http2_length(h) <= HTTP2_FRAME_BEFORE_BYTES;
}

enum { HTTP2_NOT_FOUND, HTTP2_REQUEST, HTTP2_MAY_BE };

/*
 * Does the running read begin with a request of HTTP/2, or with signs of life and a request? Of a connection
 * that is older than tacho nothing else is known, so it must be no accident: one whole frame of HEADERS on a
 * client's stream, that ends with the read or where another frame begins. HTTP2_MAY_BE: there are signs of
 * life alone. A global function: verified once a program.
 */
__noinline u32 http2_request_begins(u64 bytes)
{
	const void *buffer = first_buffer(&bytes);
	u8 header[HTTP2_HEADER];
	u32 length = 0;

	for (u32 frames = 0; frames <= HTTP2_FRAMES_BEFORE; frames++) {
		if (!buffer || bytes < HTTP2_HEADER || bpf_probe_read_user(header, HTTP2_HEADER, buffer))
			return HTTP2_NOT_FOUND;
		length = HTTP2_HEADER + http2_length(header);
		if (!http2_is_sign_of_life(header) || length > bytes)
			break;
		bytes -= length;
		buffer += length;
		if (!bytes)
			return HTTP2_MAY_BE;
	}
	if (header[3] != HTTP2_HEADERS || (header[4] & ~HTTP2_HEADERS_FLAGS) ||
	    !(header[4] & HTTP2_END_HEADERS) || header[5] & 0x80 || !(header[8] & 1) ||
	    length == HTTP2_HEADER || length > HTTP2_FRAME_BYTES)
		return HTTP2_NOT_FOUND;
	if (bytes == length)
		return HTTP2_REQUEST;
	if (bytes < length + HTTP2_HEADER || bpf_probe_read_user(header, HTTP2_HEADER, buffer + length))
		return HTTP2_NOT_FOUND;
	return http2_is_header(header) && header[3] <= HTTP2_WINDOW_UPDATE &&
		       http2_length(header) <= HTTP2_FRAME_BYTES
		   ? HTTP2_REQUEST
		   : HTTP2_NOT_FOUND;
}

/* Room for what the verifier thinks could be written. */
#define HTTP2_PREFACE_ROOM 8

/*
 * How much of the preface has been read, with what begins at `offset` of the running read? `have` bytes of it
 * were read before. 0: what comes is something else, and nothing more is looked at of it. A global function:
 * verified once a program.
 */
__noinline u32 http2_preface_part(u64 bytes, u32 offset, u64 have)
{
	const u64 preface[3] = HTTP2_PREFACE_WORDS;
	u64 read[HTTP2_PREFACE_ROOM] = HTTP2_PREFACE_WORDS;
	const void *buffer = first_buffer(&bytes);
	u64 length;

	if (!buffer || bytes <= offset || have >= HTTP2_PREFACE_BYTES)
		return 0;
	length = bytes - offset;
	if (length > HTTP2_PREFACE_BYTES - have)
		length = HTTP2_PREFACE_BYTES - have;
	/* One register for bound and use: verifiers up to 6.1 do not know that copies are equal. */
	barrier_var(have);
	barrier_var(length);
	have &= 31;
	length &= 31;
	if (bpf_probe_read_user((u8 *)read + have, length, buffer + offset))
		return 0;
	return read[0] == preface[0] && read[1] == preface[1] && read[2] == preface[2] ? have + length : 0;
}

/*
 * One more than the bytes up to the end of the preface, of which a read brings a part; 0: it brings none, or
 * too little so far. Four bytes tell, in as many reads as there may be. A proxy's header may stand before it
 * in the connection's first read.
 */
static __always_inline u32 http2_preface_end(struct socket_state *st, u32 bytes)
{
	u32 have = st->preface, proxy = 0, part = 0;

	if (have)
		part = http2_preface_part(bytes, 0, have);
	if (!part) {
		have = 0;
		part = http2_preface_part(bytes, 0, 0);
	}
	if (!part && !st->turns) {
		proxy = proxy_header(bytes);
		if (proxy && proxy < bytes)
			part = http2_preface_part(bytes, proxy, 0);
	}
	st->preface = part;
	if (part < HTTP2_PREFACE_LEAST)
		return 0;
	st->preface = 0;
	return 1 + proxy + HTTP2_PREFACE_BYTES - have;
}

/* The same, where a connection may be in the midst of HTTP/2. */
static __always_inline u32 http2_beginning(struct socket_state *st, u32 bytes, u32 direction)
{
	u32 begins = direction == TACHO_RECEIVE ? http2_preface_end(st, bytes) : 0;

	return begins ? begins : http2_begins(bytes, direction);
}

/* A SETTINGS frame of the server's has so many settings at most (RFC 9113, 6.5.2; 8441; 9218). */
#define HTTP2_SETTINGS_MOST 10
#define HTTP2_SETTING_BYTES 6

/* Does the running send begin with settings, as a server's preface does (RFC 9113, 3.4)? A global function.
 */
__noinline u32 http2_sends_settings(u64 bytes)
{
	const void *buffer = first_buffer(&bytes);
	u8 header[HTTP2_HEADER];

	if (!buffer || bytes < HTTP2_HEADER || bpf_probe_read_user(header, HTTP2_HEADER, buffer))
		return false;
	return header[3] == HTTP2_SETTINGS && !header[4] && http2_is_header(header) &&
	       http2_length(header) <= HTTP2_SETTINGS_MOST * HTTP2_SETTING_BYTES;
}

#else

static __always_inline bool http2_sends_settings(u64 bytes)
{
	return false;
}

#endif
