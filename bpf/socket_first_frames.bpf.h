/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * HTTP/2 under TLS 1.3 whose server does not show that it chose it, and whose client asks before it reads the
 * server's settings: socket_settings.bpf.h finds no settings alone then. What follows them tells, whatever
 * was asked: server and client acknowledge the settings of each other, in records that have nothing else (the
 * server's may have a window). This is looked for where the client's hello offers HTTP/2; of others, then,
 * only HTTP/1.1 may be spoken.
 *
 * HTTP/1.1 has such records as the head and the body of a short reply, sent apart. But what a client sends
 * next is a head, and none is as short; a body that is as short follows a head of its own.
 */
#pragma once

#include "socket_records.bpf.h"
#include "socket_settings.bpf.h"
#include "socket_state.bpf.h"

enum first_frames {
	FRAMES_NOT,
	FRAMES_OFFERED,	 /* the client's hello offers HTTP/2 */
	FRAMES_HIDDEN,	 /* the server does not show its choice, and has sent nothing else but tickets */
	FRAMES_SETTINGS, /* it has sent what may be its settings, */
	FRAMES_READ,	 /* and has read what may be their acknowledgement; or */
	FRAMES_SENT,	 /* has sent what may be its own */
	FRAMES_HTTP2,	 /* both */
};

/* A server's settings, in a record of their own: "404 Not Found" with a length of nine is as long as six. */
#define FIRST_FRAMES_SETTINGS 5
/* The shortest head behind which a body comes has "PUT / HTTP/1.1", "Host: a" and "Content-Length: 9". */
#define HEAD_OF_BODY_LEAST 46

static __always_inline u32 after_sent_record(u32 state, u32 length)
{
	u32 plain = length - TLS13_EXPANSION;

	switch (state) {
	case FRAMES_HIDDEN:
		if (length >= TLS_RECORD_HEADER + TICKET_RECORD_LEAST)
			return FRAMES_HIDDEN;
		return is_list_of_settings(plain, SERVER_SETTINGS_LEAST, FIRST_FRAMES_SETTINGS - 1)
			   ? FRAMES_SETTINGS
			   : FRAMES_NOT;
	case FRAMES_SETTINGS:
	case FRAMES_READ:
		if (plain != FRAME_BYTES && plain != FRAME_BYTES + WINDOW_BYTES)
			return FRAMES_NOT;
		return state == FRAMES_READ ? FRAMES_HTTP2 : FRAMES_SENT;
	default:
		return state;
	}
}

static __always_inline u32 after_read_record(u32 state, u32 length)
{
	if (length == FRAME_BYTES + TLS13_EXPANSION || length == FRAME_BYTES + TLS13_EXPANSION_PADDED)
		return state == FRAMES_SENT ? FRAMES_HTTP2 : FRAMES_READ;
	/* A server that sends its settings unasked reads the client's, and requests, behind them. */
	if (state != FRAMES_SETTINGS && length >= HEAD_OF_BODY_LEAST + TLS13_EXPANSION)
		return FRAMES_NOT;
	return state;
}

/*
 * So many bytes are sent, or read.
 * @return enum first_frames
 * A global function: the verifier works through its loop once a program.
 */
__noinline u32 follow_first_frames(u32 state, u32 bytes, u32 sent)
{
	u32 end = 0;

	for (u32 i = 0; i < SETTLING_RECORDS && end + TLS_RECORD_HEADER <= bytes; i++) {
		u32 record = record_header(end), length = TLS_RECORD_HEADER + (record >> 8);

		/* What is read without a record's beginning is the rest of one. */
		if ((u8)record != TLS_APPLICATION_DATA)
			return sent ? FRAMES_NOT : state;
		state = sent ? after_sent_record(state, length) : after_read_record(state, length);
		if (state == FRAMES_NOT || state == FRAMES_HTTP2)
			break;
		end += length;
	}
	return state;
}

static __always_inline void note_first_frames(struct socket_state *st, u32 bytes, bool sent)
{
	if (st->frames < (sent ? FRAMES_HIDDEN : FRAMES_SETTINGS))
		return;
	/* They come first. */
	if (st->turns >= TLS_TURNS)
		st->frames = FRAMES_NOT;
	else
		st->frames = follow_first_frames(st->frames, bytes, sent);
	if (st->frames < FRAMES_HTTP2)
		return;
	st->frames = FRAMES_NOT;
	st->many = true;
}
