/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Does one read bring several requests? Then turns under-count them, and the target is multiplexed. Does a
 * client begin another call within one? Then its calls are multiplexed.
 *
 * Requests of one protocol begin alike ("GET ", "*3\r\n", a binary header, a tag that is counted up). So if
 * one read has several, its first four bytes occur again, with any digits. Requests of mail do not begin
 * alike (MAIL, RCPT, DATA), but all of their lines begin with a word of four capitals. Under TLS the records
 * are alike (socket_records.bpf.h). Only yes or no leaves the program. The preface of HTTP/2 (RFC 9113, 3.4)
 * on the first turn decides at once.
 *
 * Some turns of a target are examined, each with the same probability, whether it is a connection's first or
 * its last: all turns of a target with few, some hundreds a second of a target with many.
 *
 * A client that sends call after call sends each on its own as often as several at once. So the beginning of
 * an examined call is kept, and compared with the beginning of what is sent before the answer arrives.
 */
#pragma once

#include "socket_handshake.bpf.h"
#include "socket_http2.bpf.h"
#include "socket_records.bpf.h"

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

/* Without branches, each of which the verifier would follow in every step. */
static __always_inline u8 any_digit(u8 byte)
{
	u32 value = (u8)(byte - '0');
	u32 is_digit = 0 - ((value - 10) >> 31);

	return byte - (value & is_digit);
}

#define EACH_BYTE 0x01010101U

static __always_inline bool are_capitals(u32 word)
{
	u32 below = ~(word + (0x80 - 'A') * EACH_BYTE), above = word + (0x7f - 'Z') * EACH_BYTE;

	return !((word | below | above) & 0x80 * EACH_BYTE);
}

#define ENDS_OF_WORD (1ULL << ' ' | 1ULL << '\r' | 1ULL << '\n')

/* Four capitals and the end of a word, as the last five bytes. */
static __always_inline bool is_command(u64 last)
{
	u8 end = last;

	return end <= ' ' && ENDS_OF_WORD >> end & 1 && are_capitals(last >> 8);
}

/* A line at the end that is too short for a command: the end of a mail. */
static __always_inline bool ends_with_short_line(u64 last)
{
	return (u8)(last >> 8) == '\n' || (u8)(last >> 16) == '\n' || (u8)(last >> 24) == '\n' ||
	       (u8)(last >> 32) == '\n';
}

/* Bytes of a beginning, and of it and the end of a word. */
#define BEGINNING_BYTES 4
#define COMMAND_BYTES 5

static long scan_beginning(u32 index, struct sample_scan *scan)
{
	struct beginnings *known = &scan->sample->beginnings;
	u64 at = index, last;
	u8 byte;

	barrier_var(at);
	if (at >= SAMPLE_BYTES || at >= scan->sample->length)
		return 1;
	byte = scan->sample->bytes[at];
	last = known->last << 8 | ((byte & known->digits) | (any_digit(byte) & ~known->digits));
	known->last = last;
	if (at == BEGINNING_BYTES - 1)
		known->head = last;
	else if (at >= 2 * BEGINNING_BYTES - 1 && (u32)last == known->head)
		known->found = true;
	if (at == COMMAND_BYTES - 1)
		known->commands = is_command(last);
	else if (known->commands && (u8)(last >> 8 * COMMAND_BYTES) == '\n')
		known->commands = is_command(last) ? known->commands + 1 : 0;
	return known->found ? 1 : 0;
}

DEFINE_LOOP(scan_beginnings, scan_beginning, struct sample_scan, find_sample)

/* The shortest two requests that are looked for. */
#define SEVERAL_LEAST 12

/*
 * Whether what the running call has in its first buffer begins again in it. A global function: the verifier
 * works through its loop once a program, and not on every path that comes here.
 */
__noinline u32 begins_again(u64 bytes)
{
	const void *buffer = first_buffer(&bytes);
	struct sample *sample = take_sample(buffer, bytes);
	struct beginnings *known;
	u32 head;

	if (!sample || sample->length < SEVERAL_LEAST)
		return false;
	head = word_at(sample, 0);
	if (is_tls_record(head) || head == (head & 0xff) * 0x01010101)
		return false;
	known = &sample->beginnings;
	known->digits = any_digit(head) == '0' ? 0xff : 0;
	scan_beginnings(0, SAMPLE_BYTES);
	return known->found || (known->commands > 1 && !ends_with_short_line(known->last));
}

/* Whether the turn that is open, or ends, is the second one of its connection, or one in 256. */
static __always_inline bool is_sampled(const struct socket_state *st)
{
	return st->sampler == 2;
}

/* How often a target's turns are looked at on a CPU: less often if it was so soon so many times, ... */
#define LOOK_PAUSE_NS 2000000ULL
#define LOOKS_IN_A_ROW 32
/* ... but after so long in any case, and one of so many as a mean at the least. */
#define LOOK_PAUSE_MOST_NS 1000000000ULL
#define LOOK_MASK_MOST 1023

/*
 * Is the turn that begins one that is looked at? A random number of turns is left out after each that is, the
 * more of them the faster they come: a clock alone would find what comes after a pause more often than the
 * rest, and that is how connections begin.
 */
static __always_inline bool is_looked_at(struct socket_shard *shard, u64 now)
{
	u64 pause = elapsed(shard->looked, now);
	u32 mask = shard->look_mask;
	u32 row = shard->looks_in_a_row;

	if (pause >= LOOK_PAUSE_MOST_NS) {
		mask = 0;
		row = 0;
	} else if (shard->look_in) {
		shard->look_in--;
		return false;
	} else if (pause > 4 * LOOK_PAUSE_NS) {
		mask >>= 1;
		row = 0;
	} else if (pause < LOOK_PAUSE_NS && ++row == LOOKS_IN_A_ROW) {
		mask = (mask << 1 | 1) & LOOK_MASK_MOST;
		row = 0;
	}
	shard->looked = now;
	shard->look_mask = mask;
	shard->looks_in_a_row = row;
	shard->look_in = mask ? bpf_get_prandom_u32() & mask : 0;
	return true;
}

/* A turn begins with a read of so many bytes. */
static __always_inline void sample_turn(struct socket_state *st, struct socket_shard *shard, u64 now,
					u32 bytes)
{
	const void *buffer;
	u32 head = 0;

	if (!st->sampler++) {
		/* Where HTTP/2 is followed, its preface has just been looked for. */
		buffer = st->turns <= 1 && st->http2 == HTTP2_OFF ? first_buffer(NULL) : NULL;
		if (buffer && !bpf_probe_read_user(&head, sizeof(head), buffer))
			st->many = head == HTTP2_PREFACE;
	}
	if (st->records || in_handshake(st) || !is_looked_at(shard, now))
		return;
	if (speaks_tls(st)) {
		watch_records(st, WATCH_REQUESTS, 0);
		return;
	}
	if (!first_buffer(NULL))
		return;
	add(&shard->sampled_turns, 1);
	if (begins_again(bytes))
		add(&shard->repeated_turns, 1);
}

/* A turn is answered of which the records were followed, as far as that was possible. */
static __always_inline void count_records(struct socket_state *st, struct socket_shard *shard)
{
	const union record_watch watch = {.all = st->records};

	st->records = 0;
	if (!(watch.flags & WATCH_REQUESTS))
		return;
	if (watch.run >= RECORDS_OF_SEVERAL)
		add(&shard->repeated_turns, 1);
	else if (!records_were_followed(&watch))
		return;
	add(&shard->sampled_turns, 1);
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
			st->overlap = begins_again(bytes);
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
