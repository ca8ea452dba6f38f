/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Does one read bring several requests? Then turns under-count them, and the target is told to be
 * multiplexed.
 *
 * Requests of one protocol begin alike ("GET ", "*3\r\n", a binary header), so several in one read show as
 * the first four bytes coming again. The second turn of a connection is looked at and then one in 256; only
 * the yes or no leaves the program. The preface of HTTP/2 (RFC 9113, 3.4) on the first turn says it at once.
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
