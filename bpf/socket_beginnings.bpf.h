/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Does what a call has read or sent begin like what came before it, so that it is another request?
 *
 * Requests of one protocol begin alike ("GET ", "*3\r\n", a binary header, a tag that is counted up). So if
 * one read has several, its first four bytes occur again, with any digits. Requests of mail do not begin
 * alike (MAIL, RCPT, DATA), but all of their lines begin with a word of four capitals. Where each request is
 * read by itself, the beginnings of the reads are compared.
 */
#pragma once

#include "socket_beginning_kinds.bpf.h"
#include "socket_buffers.bpf.h"
#include "socket_frames.bpf.h"
#include "socket_records.bpf.h"
#include "socket_state.bpf.h"

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

/* The end of HTTP's fields, and which of it ends a line. */
#define BLANK_LINE 0x0d0a0d0aU
#define END_OF_LINE 0xffffU

/* Bytes of a beginning, and of it and the end of a word. */
#define BEGINNING_BYTES 4
#define COMMAND_BYTES 5

static __always_inline u32 may_begin_behind(u8 byte, const struct beginnings *known)
{
	return byte & 0xc0 ? known->high : known->low >> (byte & 0x3f) & 1;
}

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
	else if (at >= 2 * BEGINNING_BYTES - 1 && (u32)last == known->head &&
		 may_begin_behind(last >> 32, known))
		known->found = true;
	if (((last >> 32 ^ BLANK_LINE) & known->line) == 0 && !known->behind)
		known->behind = last;
	if (at == COMMAND_BYTES - 1)
		known->commands = is_command(last);
	else if (known->commands && (u8)(last >> 8 * COMMAND_BYTES) == '\n')
		known->commands = is_command(last) ? known->commands + 1 : 0;
	return known->found ? 1 : 0;
}

DEFINE_LOOP(scan_beginnings, scan_beginning, struct sample_scan, find_sample)

/*
 * Behind what a request may begin. In bodies names of methods stand in quotes or in sentences. Messages of
 * PostgreSQL have a type and a length that begins with zeros: values, too, have a length in front, which
 * would look like the next message's behind a value that ends with its type. A Sync (its length is 4) or the
 * end of a text comes before a message that begins a request.
 */
#define BIT(byte) (1ULL << (byte))
#define BEHIND_LINES BIT('\n')
#define IN_TEXTS                                                                                             \
	(BIT(' ') | BIT('"') | BIT('\'') | BIT('>') | BIT('=') | BIT(':') | BIT(',') | BIT('(') | BIT('/') | \
	 BIT('-') | BIT('.'))
#define BEHIND_MESSAGES (BIT(0) | BIT(4))
#define SHORT_LENGTH 0xffff00U

static __always_inline void set_places(struct beginnings *known, u32 head, u32 kinds)
{
	known->low = ~0ULL;
	known->high = true;
	if (kinds & (KIND_NAMED | KIND_COMMAND)) {
		known->low = BEHIND_LINES;
		known->high = false;
	} else if (kinds & KIND_HTTP) {
		known->low = ~IN_TEXTS;
	} else if (!(head & SHORT_LENGTH) && (u8)(head - 'A') <= 'Z' - 'A') {
		known->low = BEHIND_MESSAGES;
		known->high = false;
	}
}

/* "DKIM-Signature: " and longer ones. */
#define FIELD_NAME_MOST 32

/*
 * A mail begins with fields (RFC 5322, 2.2), several of which may have one name ("Received: "). Where
 * requests begin so, the next one stands behind a blank line, or behind a body (JSON-RPC).
 */
static __always_inline bool begins_with_field(const struct sample *sample)
{
	for (u32 i = 0; i < FIELD_NAME_MOST && i + 1 < sample->length; i++) {
		u8 byte = sample->bytes[i];

		if (byte == ':')
			return i && sample->bytes[i + 1] == ' ';
		if (byte != '-' && (u8)((byte | 0x20) - 'a') > 'z' - 'a')
			return false;
	}
	return false;
}

/* The shortest two requests that are looked for. */
#define SEVERAL_LEAST 12

/*
 * Whether what the running call has in its buffers begins again in them. A global function: the verifier
 * works through its loop once a program, and not on every path that comes here.
 */
__noinline u32 begins_again(u64 bytes)
{
	struct sample *sample = gather_sample(bytes);
	struct beginnings *known;
	u32 head, kinds, behind;
	bool field;

	if (!sample || sample->length < SEVERAL_LEAST)
		return false;
	head = word_at(sample, 0);
	/* The header of a proxy, version 2, begins like the end of HTTP's fields. */
	if (is_tls_record(head) || head == (head & 0xff) * 0x01010101 ||
	    head == __builtin_bswap32(BLANK_LINE))
		return false;
	known = &sample->beginnings;
	known->digits = any_digit(head) == '0' ? 0xff : 0;
	kinds = kinds_of_beginning(head);
	field = begins_with_field(sample);
	set_places(known, head, kinds);
	if (field) {
		known->low = ~(IN_TEXTS | BEHIND_LINES);
		known->high = true;
	}
	known->line = kinds & KIND_QUERY ? END_OF_LINE : ~0U;
	scan_beginnings(0, SAMPLE_BYTES);
	behind = kinds_of_beginning(__builtin_bswap32(known->behind));
	return known->found || (field && known->behind == known->head) ||
	       (known->commands > 1 && !ends_with_short_line(known->last)) || kinds & behind & KIND_METHODS ||
	       (kinds & KIND_QUERY && behind & KIND_COMMAND) || has_several_frames(bytes);
}

/* A chunk's size (RFC 9112, 7.1): the pieces of one upload begin alike. */
static __always_inline bool may_be_hexadecimal(u32 head)
{
	u32 others = 0, ended = 0;

	for (u32 i = 0; i < BEGINNING_BYTES; i++) {
		u8 byte = head >> 8 * i;
		u8 letter = (byte | 0x20) - 'a';

		others += !ended && (u8)(byte - '0') > 9 && letter > 5 && byte != '\r' && byte != '\n';
		/* Behind a first digit: a length in front may be ten, too. */
		ended |= i && byte == '\n';
	}
	return !others;
}

static __always_inline bool is_text(u32 head)
{
	u32 others = 0;

	for (u32 i = 0; i < BEGINNING_BYTES; i++) {
		u8 byte = head >> 8 * i;

		others += (byte < ' ' && byte != '\r' && byte != '\n' && byte != '\t') || byte > '~';
	}
	return !others;
}

/* With any digits, unless the first byte is one. */
static __always_inline u32 beginning_of(u32 head)
{
	u32 any = 0;

	if (any_digit(head) == '0')
		return head;
	for (u32 i = 0; i < BEGINNING_BYTES; i++)
		any |= (u32)any_digit(head >> 8 * i) << 8 * i;
	return any;
}

/* At most one of the four bytes differs: a number that is counted up. */
static __always_inline bool differ_by_a_byte(u32 one, u32 other)
{
	u32 differ = one ^ other;

	return !(differ & ~0xffU) || !(differ & ~0xff00U) || !(differ & ~0xff0000U) ||
	       !(differ & ~0xff000000U);
}

/* Fields of a header are shorter than a request of its own. */
#define SHARING_REQUEST_LEAST 12

/* How the buffer of the running call begins; 0 where that shows nothing. */
static __always_inline u32 head_of_call(u32 bytes)
{
	const void *buffer = bytes >= BEGINNING_BYTES ? bytes_of_call(0, BEGINNING_BYTES) : NULL;
	u32 head = 0;

	if (!buffer || bpf_probe_read_user(&head, sizeof(head), buffer))
		return 0;
	return is_tls_record(head) || head == (head & 0xff) * EACH_BYTE ? 0 : head;
}

/* Many servers read it by itself. */
static __always_inline u32 short_length_of_call(void)
{
	const void *buffer = first_buffer(NULL);
	u16 length = 0;

	return buffer && !bpf_probe_read_user(&length, sizeof(length), buffer) ? length : 0;
}

/* A turn or a call that is examined begins with the running call. */
static __always_inline void note_head(struct socket_state *st, u32 bytes)
{
	u32 length = length_as_in_front(bytes);
	u32 head = bytes == SHORT_LENGTH_BYTES	   ? short_length_of_call()
		   : bytes <= SHARING_REQUEST_MOST ? head_of_call(bytes)
						   : 0;

	st->head = length ? length : may_be_hexadecimal(head) ? 0 : head;
	st->head_length = bytes;
}

/*
 * More is read in an examined turn, behind `read` bytes. Are these a message with its length in front? That
 * stood in a read of its own, or all of it in one.
 */
static __always_inline bool is_whole_message(u32 head, u32 head_length, u32 read)
{
	u32 by_short = SHORT_LENGTH_BYTES + bpf_ntohs(head);
	u32 by_long = LONG_LENGTH_BYTES + (bpf_ntohl(head) & LONG_LENGTH_MASK);

	if (head_length == SHORT_LENGTH_BYTES)
		return read == by_short;
	if (head_length == LONG_LENGTH_BYTES || head_length == LDAP_HEAD_BYTES ||
	    head_length == NATIVE_HEADER_BYTES)
		return read == by_long;
	return read == head_length && (read == by_short || read == by_long);
}

/*
 * Does another request begin with the running call, within a turn or a call that is examined? Texts begin
 * alike but for digits, or each with a method of HTTP. Others do if they are as long, too: parts of one
 * request hardly are. If they came by themselves a number in their beginnings may differ. A global function:
 * verified once a program.
 */
__noinline u32 begins_alike(u32 before, u32 length, u32 bytes, u32 alone)
{
	u32 head = bytes <= SHARING_REQUEST_MOST ? head_of_call(bytes) : 0;

	if (!head || !before)
		return false;
	if (kinds_of_beginning(head) & kinds_of_beginning(before) & KIND_METHODS)
		return true;
	if (is_text(head) && beginning_of(head) == beginning_of(before))
		return true;
	if (bytes != length)
		return false;
	return head == before || (alone && bytes >= SHARING_REQUEST_LEAST && differ_by_a_byte(head, before));
}
