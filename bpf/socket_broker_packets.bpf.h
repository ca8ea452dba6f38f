/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * The packets that a client sends to a message broker, or the frames of a WebSocket: which of them get an
 * answer? What keeps a WebSocket alive, or ends it, gets none that counts. Their headers are followed through
 * a connection, whatever pieces it is read in, up to 4096 bytes of them in each read. What is not seen there
 * wants no answer, as it seems; the next turn begins with a packet then.
 */
#pragma once

#include "socket_buffers.bpf.h"

/* In place of the number of turns: what the client speaks. */
enum { MQTT_TURNS = 0xfb, AMQP_TURNS, NATS_TURNS, WEBSOCKET_TURNS };

#define PACKET_KIND 0xf
/* Of the connection: a message that is published is acknowledged. */
#define PACKETS_CONFIRMED 0x20
/* Of the turn: a packet wants an answer, or several do. */
#define PACKETS_ASK 0x40
#define SEVERAL_ASK 0x80
/* In place of `at`. */
#define PACKETS_LOST 0xff

static __always_inline void packet_asks(union packet_watch *watch)
{
	watch->kind |= watch->kind & PACKETS_ASK ? SEVERAL_ASK : PACKETS_ASK;
}

/* CONNECT, PUBREL, SUBSCRIBE, UNSUBSCRIBE, PINGREQ and AUTH; PUBLISH by its quality of service. */
#define MQTT_ASKS (1 << 1 | 1 << 6 | 1 << 8 | 1 << 10 | 1 << 12 | 1 << 15)
#define MQTT_PUBLISH 3
#define MQTT_QUALITY 6
#define MQTT_LENGTH_MOST 4

static __always_inline void follow_mqtt(union packet_watch *watch, u8 byte)
{
	u32 type = byte >> 4, shift;

	if (!watch->at) {
		if (MQTT_ASKS >> type & 1 || (type == MQTT_PUBLISH && byte & MQTT_QUALITY))
			packet_asks(watch);
		watch->at = 1;
		return;
	}
	shift = 7 * (watch->at - 1) & 31;
	watch->left |= (u32)(byte & 0x7f) << shift;
	watch->at = byte & 0x80 && watch->at < MQTT_LENGTH_MOST ? watch->at + 1 : 0;
}

/* A frame: type, channel (2), length (4), then class (2) and method (2), or else; one byte at its end. */
#define AMQP_METHOD 1
#define AMQP_HEADER 7
#define AMQP_METHOD_HEADER 11
#define AMQP(class, method) ((class) << 8 | (method))

static __always_inline bool amqp_asks(union packet_watch *watch)
{
	switch (watch->word) {
	case AMQP(60, 40): /* publish */
		return watch->kind & PACKETS_CONFIRMED;
	case AMQP(60, 80):  /* ack */
	case AMQP(60, 90):  /* reject */
	case AMQP(60, 120): /* nack */
	case AMQP(10, 31):  /* tune-ok */
	case AMQP(10, 51):  /* close-ok of the connection, */
	case AMQP(20, 41):  /* of a channel */
	case AMQP(20, 21):  /* flow-ok */
		return false;
	case AMQP(85, 10): /* confirm.select */
		watch->kind |= PACKETS_CONFIRMED;
	}
	return true;
}

static __always_inline void follow_amqp(union packet_watch *watch, u8 byte)
{
	u8 at = watch->at++;

	if (!at) {
		watch->kind = (watch->kind & ~PACKET_KIND) | (byte & PACKET_KIND);
	} else if (at >= AMQP_HEADER) {
		if (at & 1 || at >= AMQP_METHOD_HEADER)
			return;
		watch->word = watch->word << 8 | byte;
		if (at != AMQP_METHOD_HEADER - 1)
			return;
		if (amqp_asks(watch))
			packet_asks(watch);
		watch->left -= AMQP_METHOD_HEADER - AMQP_HEADER - 1;
		watch->at = 0;
	} else if (at > 2) {
		watch->left = watch->left << 8 | byte;
		if (at != AMQP_HEADER - 1)
			return;
		watch->word = 0;
		if ((watch->kind & PACKET_KIND) == AMQP_METHOD &&
		    watch->left >= AMQP_METHOD_HEADER - AMQP_HEADER)
			return;
		watch->left++;
		watch->at = 0;
	}
}

/* Lines; a message follows PUB and HPUB, whose last field is its length. Verbs as they are read. */
#define NATS_VERB_BYTES 4
#define NATS_PUB 0x50554220U
#define NATS_HPUB 0x48505542U
#define NATS_PING 0x50494e47U
enum { NATS_OTHER, NATS_MESSAGE, NATS_MESSAGE_WITH_HEADER };
/* Fields of their lines if no reply is asked for, by another message; that has its subject in one more. */
#define NATS_PUB_FIELDS 2
#define NATS_HPUB_FIELDS 3
/* A flag: fields may stand apart by several spaces. */
#define NATS_SPACE 0x10

/* The first bytes of a line, in the order of memory. */
static __always_inline bool is_nats_verb(u32 word)
{
	switch (word) {
	case 0x20425550: /* "PUB " */
	case 0x42555048: /* HPUB */
	case 0x20425553: /* "SUB " */
	case 0x55534e55: /* UNSUB */
	case 0x474e4950: /* PING */
	case 0x474e4f50: /* PONG */
		return true;
	}
	return false;
}

static __always_inline void end_nats_line(union packet_watch *watch)
{
	u8 verb = watch->kind & PACKET_KIND;

	if (verb && watch->word > (verb == NATS_MESSAGE ? NATS_PUB_FIELDS : NATS_HPUB_FIELDS))
		packet_asks(watch);
	watch->left = verb ? watch->left + 2 : 0;
	watch->kind &= ~(PACKET_KIND | NATS_SPACE);
	watch->word = 0;
	watch->at = 0;
}

static __always_inline void follow_nats(union packet_watch *watch, u8 byte)
{
	u8 digit = byte - '0';

	if (byte == '\n') {
		end_nats_line(watch);
	} else if (watch->at < NATS_VERB_BYTES) {
		watch->left = watch->left << 8 | byte;
		if (++watch->at < NATS_VERB_BYTES)
			return;
		if (watch->left == NATS_PING)
			packet_asks(watch);
		else if (watch->left == NATS_PUB)
			watch->kind |= NATS_MESSAGE;
		else if (watch->left == NATS_HPUB)
			watch->kind |= NATS_MESSAGE_WITH_HEADER;
		if ((u8)watch->left == ' ')
			watch->kind |= NATS_SPACE;
		watch->word = 0;
		watch->left = 0;
	} else if (byte == ' ') {
		watch->kind |= NATS_SPACE;
	} else if (byte != '\r') {
		if (watch->kind & NATS_SPACE) {
			watch->kind &= ~NATS_SPACE;
			watch->word++;
			watch->left = 0;
		}
		watch->left = digit < 10 ? watch->left * 10 + digit : 0;
	}
}

/*
 * WebSocket (RFC 6455, 5.2): a bit for the end of a message, a type of four bits; a bit for a mask, and a
 * length of seven, or 126 or 127 if it follows in two bytes or eight; the mask of four bytes.
 */
#define WEBSOCKET_LAST 0x80
#define WEBSOCKET_TYPE 0xf
#define WEBSOCKET_TEXT 1
#define WEBSOCKET_BINARY 2
#define WEBSOCKET_CLOSE 8
#define WEBSOCKET_PONG 10
#define WEBSOCKET_MASKED 0x80
#define WEBSOCKET_MASK_BYTES 4
/* A pong of Engine.IO (Socket.IO) is a text of one character, which takes part in the header here. */
#define ENGINE_IO_PONG '3'

/*
 * `kind`: WEBSOCKET_TEXT if it may be such a pong. `word`: bytes of the header, and the mask's first one. A
 * global function, of plain numbers: the verifier works through it once a program, not once a byte.
 */
__noinline u64 follow_websocket(u64 all, u32 next)
{
	union packet_watch known = {.all = all}, *watch = &known;
	u8 byte = next;
	u8 at = watch->at++, header = watch->word;
	u8 length = byte & ~WEBSOCKET_MASKED;

	if (!at) {
		watch->kind &= ~PACKET_KIND;
		if (byte == (WEBSOCKET_LAST | WEBSOCKET_TEXT))
			watch->kind |= WEBSOCKET_TEXT;
		else if ((byte & WEBSOCKET_TYPE) <= WEBSOCKET_BINARY)
			watch->kind |= PACKETS_ASK;
		return known.all;
	}
	if (at == 1) {
		header = 2 + (byte & WEBSOCKET_MASKED ? WEBSOCKET_MASK_BYTES : 0) + (length == 126 ? 2 : 0) +
			 (length == 127 ? 8 : 0);
		watch->left = length < 126 ? length : 0;
		if (byte == (WEBSOCKET_MASKED | 1) && watch->kind & WEBSOCKET_TEXT) {
			header++;
			watch->left = 0;
		} else if (watch->kind & WEBSOCKET_TEXT) {
			watch->kind = (watch->kind & ~PACKET_KIND) | PACKETS_ASK;
		}
		watch->word = header;
	} else if (watch->kind & WEBSOCKET_TEXT) {
		if (at == 2)
			watch->word |= byte << 8;
		else if (at == header - 1 && (byte ^ watch->word >> 8) != ENGINE_IO_PONG)
			watch->kind |= PACKETS_ASK;
	} else if (at < header - WEBSOCKET_MASK_BYTES) {
		watch->left = watch->left << 8 | byte;
	}
	if (at + 1 == header)
		watch->at = 0;
	return known.all;
}

/* Steps of a read, each a byte of a packet's header. */
#define PACKET_STEPS 4096

static __always_inline u32 skip_packet(union packet_watch *watch, u32 bytes)
{
	if (watch->at)
		return 0;
	if (bytes > watch->left)
		bytes = watch->left;
	watch->left -= bytes;
	return bytes;
}

/* The next part of the read goes into the sample, without what belongs to a packet whose header is complete.
 */
static __always_inline bool take_next_sample(struct sample *sample)
{
	struct packets *packets = &sample->packets;
	u64 skip = skip_packet(&packets->watch, packets->behind), length;

	packets->next += skip;
	packets->behind -= skip;
	length = packets->behind;
	barrier_var(length);
	if (length > SAMPLE_BYTES)
		length = SAMPLE_BYTES;
	if (!length || bpf_probe_read_user(sample->bytes, length, (const void *)packets->next))
		return false;
	sample->length = length;
	packets->next += length;
	packets->behind -= length;
	packets->at = 0;
	return true;
}

static long follow_packet(u32 index, struct sample_scan *scan)
{
	struct sample *sample = scan->sample;
	struct packets *packets = &sample->packets;
	union packet_watch *watch = &packets->watch;
	u64 at;
	u8 byte;

	packets->at += skip_packet(watch, sample->length - packets->at);
	if (packets->at >= sample->length && !take_next_sample(sample))
		return 1;
	at = packets->at;
	barrier_var(at);
	if (at >= SAMPLE_BYTES)
		return 1;
	byte = sample->bytes[at];
	packets->at++;
	if (packets->protocol == MQTT_TURNS)
		follow_mqtt(watch, byte);
	else if (packets->protocol == AMQP_TURNS)
		follow_amqp(watch, byte);
	else if (packets->protocol == NATS_TURNS)
		follow_nats(watch, byte);
	else
		watch->all = follow_websocket(watch->all, byte);
	return 0;
}

DEFINE_LOOP(follow_packet_bytes, follow_packet, struct sample_scan, find_sample)

/*
 * What has been read is followed, by the state `all` of a union packet_watch. Where it cannot be read, it may
 * want an answer. A global function: the verifier works through its loop once a program.
 */
__noinline u64 follow_packets(u64 all, u32 protocol, u64 bytes)
{
	union packet_watch watch = {.all = all};
	u64 length = bytes, rest;
	const void *buffer = first_buffer(&length);
	struct sample *sample;

	if (watch.at == PACKETS_LOST)
		return all;
	sample = take_sample(buffer, length);
	if (!sample) {
		watch.kind |= PACKETS_ASK;
		watch.at = PACKETS_LOST;
		return watch.all;
	}
	sample->packets.watch = watch;
	sample->packets.protocol = protocol;
	sample->packets.next = (u64)buffer + sample->length;
	sample->packets.behind = length - sample->length;
	sample->packets.at = 0;
	follow_packet_bytes(0, PACKET_STEPS);
	watch = sample->packets.watch;
	rest = bytes - length + sample->packets.behind + sample->length - sample->packets.at;
	if (rest != skip_packet(&watch, rest))
		watch.at = PACKETS_LOST;
	return watch.all;
}

/* A turn begins: none of its packets is known. */
static __always_inline u64 packets_of_turn(u64 all)
{
	union packet_watch watch = {.all = all};

	watch.kind &= ~(PACKETS_ASK | SEVERAL_ASK);
	if (watch.at == PACKETS_LOST) {
		watch.kind &= PACKETS_CONFIRMED;
		watch.at = watch.word = watch.left = 0;
	}
	return watch.all;
}

static __always_inline bool several_packets_ask(u64 all)
{
	const union packet_watch watch = {.all = all};

	return watch.kind & SEVERAL_ASK;
}
