/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Messages that tell their length: in two bytes in front (DNS by TCP), in four (Kafka, Thrift; the first bit
 * may be set, ONC RPC), at the end of a header of nine (Cassandra, versions 3 and 4), in 17 bits of a header
 * with a checksum, before another checksum (Cassandra, version 5), behind the mark of a sequence that begins
 * with a number (LDAP, RFC 4511, 4.1.1), in four bytes in front, the least significant one first (MongoDB),
 * in two bytes behind a number and a protocol that is 0 (Modbus/TCP). Such protocols number their requests
 * and carry many at a time.
 */
#pragma once

#include "socket_buffers.bpf.h"

enum framing {
	FRAMED_SHORT,
	FRAMED_LONG,
	FRAMED_NATIVE,
	FRAMED_CHECKED,
	FRAMED_LDAP,
	FRAMED_LITTLE,
	FRAMED_MODBUS,
	FRAMINGS
};

#define SHORT_LENGTH_BYTES 2
#define LONG_LENGTH_BYTES 4
#define LONG_LENGTH_MASK 0x7fffffffU
#define NATIVE_HEADER_BYTES 9
#define NATIVE_OPCODE_MOST 0x10
#define CHECKED_LENGTH_MASK 0x1ffffU
#define CHECKED_BYTES 10 /* before and behind what it holds */
#define DNS_HEADER_BYTES 12
/* What OpenLDAP's library reads by itself first. */
#define LDAP_HEAD_BYTES 8
/* Of a message of MongoDB: behind its length stand its number, what it answers (nothing), and its kind. */
#define LITTLE_HEADER_BYTES 16
/* Of Modbus/TCP: up to where its length counts from; a message has a unit and a function at least. */
#define MODBUS_HEADER_BYTES 6
#define MODBUS_LEAST 2
#define MODBUS_MOST 254
#define BER_SEQUENCE 0x30
#define BER_INTEGER 2
/* The bytes that tell it. */
#define FRAME_HEAD_BYTES NATIVE_HEADER_BYTES
/* Followed so far in one read. */
#define FRAMES_FOLLOWED 4

struct frame_head {
	u8 bytes[FRAME_HEAD_BYTES];
};

/*
 * Of the whole message: a length below 128 is one byte, else that byte tells how many bytes of it follow
 * (X.690, 8.1.3). Without more branches than it needs: the verifier comes here often.
 */
static __always_inline u64 ldap_length(const struct frame_head *head)
{
	u8 first = head->bytes[1];
	u32 more = (first >> 7) * (first & 7);
	u64 behind, length = first;

	__builtin_memcpy(&behind, &head->bytes[1], sizeof(behind));
	if (head->bytes[0] != BER_SEQUENCE || (u8)(behind >> 8 * (more + 1)) != BER_INTEGER)
		return 0;
	if (more)
		length = __builtin_bswap64(behind) << 8 >> (64 - 8 * more);
	return 2 + more + (u32)length;
}

/* Of the whole message; 0: too short, or not framed so. */
static __always_inline u64 frame_length(u32 framing, const struct frame_head *head)
{
	const u8 *b = head->bytes;
	u32 length;

	switch (framing) {
	case FRAMED_SHORT:
		length = (u32)b[0] << 8 | b[1];
		return length >= DNS_HEADER_BYTES ? SHORT_LENGTH_BYTES + length : 0;
	case FRAMED_LONG:
		length = ((u32)b[0] << 24 | (u32)b[1] << 16 | (u32)b[2] << 8 | b[3]) & LONG_LENGTH_MASK;
		return length >= LONG_LENGTH_BYTES ? LONG_LENGTH_BYTES + (u64)length : 0;
	case FRAMED_NATIVE:
		length = (u32)b[5] << 24 | (u32)b[6] << 16 | (u32)b[7] << 8 | b[8];
		return (b[0] == 3 || b[0] == 4) && b[4] <= NATIVE_OPCODE_MOST
			   ? NATIVE_HEADER_BYTES + (u64)length
			   : 0;
	case FRAMED_LDAP:
		return ldap_length(head);
	case FRAMED_LITTLE:
		length = b[0] | (u32)b[1] << 8 | (u32)b[2] << 16 | (u32)b[3] << 24;
		return length > LITTLE_HEADER_BYTES && !b[8] ? length : 0;
	case FRAMED_MODBUS:
		length = b[5];
		return !(b[2] | b[3] | b[4]) && length >= MODBUS_LEAST && length <= MODBUS_MOST
			   ? MODBUS_HEADER_BYTES + length
			   : 0;
	default:
		length = ((u32)b[2] << 16 | (u32)b[1] << 8 | b[0]) & CHECKED_LENGTH_MASK;
		return length >= NATIVE_HEADER_BYTES ? CHECKED_BYTES + length : 0;
	}
}

/*
 * Does what the running call has in its first buffer consist of several messages that tell their length? They
 * end where the data ends, or more of them follow than are looked at; a length of one or two bytes proves
 * little. A global function: verified once a program.
 */
__noinline u32 has_several_frames(u64 bytes)
{
	struct sample_scan scan;
	struct frame_head first, head;
	u64 sampled;

	if (!find_sample(&scan, 0) || bpf_probe_read_kernel(&first, sizeof(first), scan.sample->bytes))
		return false;
	sampled = scan.sample->length;
	if (sampled < 2 * FRAME_HEAD_BYTES)
		return false;
	for (u32 framing = 0; framing < FRAMINGS; framing++) {
		u64 at = frame_length(framing, &first);

		for (u32 i = 1; i < FRAMES_FOLLOWED && at && at + FRAME_HEAD_BYTES <= sampled; i++) {
			u64 length, place = at;

			/* It is below that. Verifiers up to 6.1 have to see it right before the use. */
			barrier_var(place);
			place &= 2 * SAMPLE_BYTES - 1;
			length = bpf_probe_read_kernel(&head, sizeof(head), scan.sample->bytes + place)
				     ? 0
				     : frame_length(framing, &head);

			at = length && length <= bytes - at ? at + length : 0;
			if (at == bytes || (at && i == FRAMES_FOLLOWED - 1) ||
			    (at + FRAME_HEAD_BYTES > sampled && sampled == SAMPLE_BYTES &&
			     framing != FRAMED_SHORT && framing != FRAMED_MODBUS))
				return true;
		}
	}
	return false;
}

/* Requests that share a connection are short. */
#define SHARING_REQUEST_MOST 1100

/*
 * Of a message whose length does not stand in its first four bytes, if the running call has all of it, or its
 * header: its length as if it stood in front, in the order of the network; else 0. A global function, too.
 */
__noinline u32 length_as_in_front(u32 bytes)
{
	const void *buffer = first_buffer(NULL);
	struct frame_head head;
	u64 length;

	if (!buffer || bytes < LDAP_HEAD_BYTES || bpf_probe_read_user(&head, sizeof(head), buffer))
		return 0;
	length = frame_length(FRAMED_NATIVE, &head);
	if (length != bytes && bytes != NATIVE_HEADER_BYTES) {
		length = frame_length(FRAMED_LDAP, &head);
		if (length != bytes && bytes != LDAP_HEAD_BYTES)
			length = frame_length(FRAMED_CHECKED, &head) == bytes ? bytes : 0;
	}
	return length && length <= SHARING_REQUEST_MOST ? bpf_htonl(length - LONG_LENGTH_BYTES) : 0;
}
