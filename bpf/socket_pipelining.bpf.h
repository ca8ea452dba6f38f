/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Does one read bring several requests? Then turns under-count them, and the target is told to be
 * multiplexed. Does a client begin another call in the midst of one? Then its calls are.
 *
 * Requests of one protocol begin alike ("GET ", "*3\r\n", a binary header), so several in one read show as
 * the first four bytes coming again. The second turn of a connection is looked at and then one in 256; only
 * the yes or no leaves the program. The preface of HTTP/2 (RFC 9113, 3.4) on the first turn says it at once.
 *
 * A client that sends call after call sends each on its own as often as several at once: of a call that is
 * looked at the beginning is kept, and compared with that of what is sent before the answer comes.
 */
#pragma once

#include "socket_handshake.bpf.h"
#include "socket_http2.bpf.h"

static __always_inline u32 word_at(const struct sample *sample, u32 offset)
{
	const u8 *b = &sample->bytes[offset];

	return b[0] | (u32)b[1] << 8 | (u32)b[2] << 16 | (u32)b[3] << 24;
}

/* Several TLS records are one request, or one flight of a handshake, more often than not. */
static __always_inline bool is_tls_record(u32 head)
{
	u8 type = head;

	return type >= TLS_CHANGE_CIPHER_SPEC && type <= TLS_APPLICATION_DATA && (u8)(head >> 8) == 3;
}

/*
 * Whether the beginning of what was received comes again in it. A global function: the verifier works through
 * its loop once a program, and not on every path that comes here.
 */
__noinline u32 begins_again(u64 buffer, u32 bytes)
{
	struct sample *sample;
	u32 zero = 0, head, word;
	u64 length = bytes;

	sample = bpf_map_lookup_elem(&call_sample, &zero);
	if (!sample || bytes < 12)
		return false;
	/* Kept in one register: verifiers up to 6.1 forget the bound of a copy. */
	barrier_var(length);
	if (length > SAMPLE_BYTES)
		length = SAMPLE_BYTES;
	if (bpf_probe_read_user(sample->bytes, length, (const void *)buffer))
		return false;
	head = word_at(sample, 0);
	if (is_tls_record(head) || head == (head & 0xff) * 0x01010101)
		return false;
	word = word_at(sample, 1);
	for (u32 i = 5; i < SAMPLE_BYTES; i++) {
		if (i >= length)
			return false;
		word = word >> 8 | (u32)sample->bytes[i] << 24;
		if (word == head)
			return true;
	}
	return false;
}

/* Whether the turn that is open, or ends, is one of those that are looked at. */
static __always_inline bool is_sampled(const struct socket_state *st)
{
	return st->sampler == 2;
}

static __always_inline void sample_turn(struct socket_state *st, struct socket_shard *shard, u32 bytes)
{
	const void *buffer;
	u32 head = 0;

	switch (st->sampler++) {
	case 0:
		/* Where HTTP/2 is followed, its preface has just been looked for. */
		buffer = st->turns <= 1 && st->http2 == HTTP2_OFF ? first_buffer(NULL) : NULL;
		if (buffer && !bpf_probe_read_user(&head, sizeof(head), buffer))
			st->many = head == HTTP2_PREFACE;
		break;
	case 1:
		buffer = first_buffer(NULL);
		if (!buffer)
			break;
		add(&shard->sampled_turns, 1);
		if (begins_again((u64)buffer, bytes))
			add(&shard->repeated_turns, 1);
		break;
	}
}

/* How what is being sent begins; 0 where that tells nothing. */
static __always_inline u32 head_of_send(void)
{
	const void *buffer = first_buffer(NULL);
	u32 head = 0;

	if (!buffer || bpf_probe_read_user(&head, sizeof(head), buffer))
		return 0;
	return is_tls_record(head) || head == (head & 0xff) * 0x01010101 ? 0 : head;
}

/* A client sends the first piece of a call. */
static __always_inline void sample_call(struct socket_state *st, u32 bytes)
{
	st->head = 0;
	st->overlap = false;
	switch (st->sampler++) {
	case 0:
		if (head_of_send() == HTTP2_PREFACE)
			st->many = true;
		break;
	case 1:
		st->head = head_of_send();
		if (st->head)
			st->overlap = begins_again((u64)first_buffer(NULL), bytes);
		break;
	}
}

/* A client's answer may sit unread for so long before the hook of the send that it answers has run. */
#define LATE_HOOK_NS 1000000ULL

/*
 * A client sends in the midst of a call. It begins another one if an answer waits unread meanwhile, or if it
 * is one of those that are looked at and this begins like it.
 */
static __always_inline void sample_open_call(struct socket_state *st, u64 now)
{
	if (st->overlap)
		return;
	if (st->head)
		st->overlap = head_of_send() == st->head;
	if (st->sampler > 2 && st->arrival && elapsed(st->arrival, now) > LATE_HOOK_NS)
		st->overlap = true;
}

/* Data came to a client. What the peer has not got yet it cannot answer: then this answers an earlier call.
 */
static __always_inline bool answers_earlier_call(const struct socket_state *st, const struct tcp_sock *tp)
{
	/* A FIN takes a place, too. In a connection's first calls a server's session tickets come unasked. */
	return tp && st->call_open && st->sampler > 2 && (s32)(FIELD(tp, write_seq) - FIELD(tp, snd_una)) > 1;
}

static __always_inline void count_multiplexed_call(struct socket_state *st, struct socket_shard *shard)
{
	if (st->head) {
		add(&shard->sampled_calls, 1);
		if (st->overlap)
			add(&shard->repeated_calls, 1);
		st->head = 0;
	}
	if (st->overlap || st->many)
		add(&shard->calls_overlapped, 1);
	st->overlap = false;
}
