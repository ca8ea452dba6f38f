/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Clients of message brokers, and of WebSocket. A subscriber acknowledges each delivery at once, and gets no
 * reply to that: the next delivery would look like the reply, however late it is sent. Timing does not
 * distinguish such a client from one that asks and waits. Its protocol does, in the clear: MQTT
 * (OASIS, 3.1, 3.4, 3.7), AMQP (0-9-1, 2.3) and NATS, whose packets are followed
 * (socket_broker_packets.bpf.h). A turn without one that gets an answer is no request.
 *
 * A server may read byte by byte, so the first bytes of a connection's first turn are gathered. A message of
 * such a client is in flight only once it has been answered.
 */
#pragma once

#include "socket_broker_packets.bpf.h"
#include "socket_buffers.bpf.h"
#include "socket_handshake.bpf.h"
#include "socket_proxy.bpf.h"
#include "socket_state.bpf.h"

#define OPENING_BYTES 8

/* CONNECT, of a length of one byte or two, then the name of the protocol: "MQTT", before 3.1.1 "MQIsdp". */
#define MQTT_CONNECT 0x10
#define MQTT_NAME 0x54514d0400ULL
#define MQTT_OLD_NAME 0x49514d0600ULL
#define MQTT_NAME_MASK 0xffffffffffULL
#define MQTT_LONG 0x80
/* "AMQP", 0, 0, 9, 1. */
#define AMQP_GREETING 0x0109000050514d41ULL
/* "CONNECT ": of NATS if what comes next is so, too. A proxy is asked to connect like that. */
#define NATS_GREETING 0x205443454e4e4f43ULL
/* What a client gets for a message that wants no answer, if it asked for that at the beginning: "+OK" */
#define NATS_OK 0x4b4f2b
#define NATS_OK_MASK 0xffffff

static __always_inline bool names_mqtt(u64 name)
{
	name &= MQTT_NAME_MASK;
	return name == MQTT_NAME || name == MQTT_OLD_NAME;
}

/* The first turn, and the first four bytes of the second. @return in place of the number of turns; 0: none */
static __always_inline u8 greeted_broker(u64 opening, u32 next)
{
	if ((u8)opening == MQTT_CONNECT &&
	    names_mqtt(opening & MQTT_LONG << 8 ? opening >> 24 : opening >> 16))
		return MQTT_TURNS;
	if (opening == AMQP_GREETING)
		return AMQP_TURNS;
	return opening == NATS_GREETING && is_nats_verb(next) ? NATS_TURNS : 0;
}

/* WebSocket comes after an upgrade by a GET. */
#define HTTP_GET 0x20544547

/* Does what follows a GET begin with such a frame? `bytes` of it are known. */
static __always_inline bool is_websocket(u64 opening, u32 bytes)
{
	u8 type = opening & WEBSOCKET_TYPE;

	if (!(opening & WEBSOCKET_LAST) || (bytes > 1 && !(opening >> 8 & WEBSOCKET_MASKED)))
		return false;
	return type <= WEBSOCKET_BINARY || (type >= WEBSOCKET_CLOSE && type <= WEBSOCKET_PONG);
}

static __always_inline bool speaks_to_broker(const struct socket_state *st)
{
	return (u8)(st->turns - MQTT_TURNS) <= WEBSOCKET_TURNS - MQTT_TURNS;
}

/*
 * The bytes of the running read that belong to the first eight of a turn, at their place. A global function:
 * verified once a program.
 */
__noinline u64 part_of_opening(u32 have, u32 bytes)
{
	u64 known = bytes, length, part = 0;
	const void *buffer = first_buffer(&known);

	if (!buffer || have >= OPENING_BYTES || !known)
		return 0;
	length = OPENING_BYTES - have;
	if (length > known)
		length = known;
	/* Kept in one register: verifiers up to 6.1 forget the bound of a copy. */
	barrier_var(length);
	length &= 15;
	if (length > OPENING_BYTES || bpf_probe_read_user(&part, length, buffer))
		return 0;
	return part << 8 * have;
}

/* The turn is answered, as it seems, by so many bytes: does it bring nothing that wants an answer? */
static __always_inline bool only_acknowledges(const struct socket_state *st, u32 bytes)
{
	const union packet_watch watch = {.all = st->opening};

	if (watch.kind & PACKETS_ASK)
		return false;
	return st->turns != NATS_TURNS || (part_of_opening(0, bytes) & NATS_OK_MASK) != NATS_OK;
}

/*
 * The first eight bytes behind a proxy's header that was read together with them, if they tell such a client.
 * A global function: verified once a program.
 */
__noinline u64 opening_behind_proxy(u32 bytes)
{
	u32 header = proxy_header(bytes);
	const void *buffer = header && header < bytes ? bytes_of_call(header, OPENING_BYTES) : NULL;
	u64 opening = 0;

	if (!buffer || bpf_probe_read_user(&opening, sizeof(opening), buffer))
		return 0;
	return (u32)opening == HTTP_GET || opening == NATS_GREETING || greeted_broker(opening, 0) ? opening
												  : 0;
}

/* Something is read in the open turn. */
static __always_inline void gather_opening(struct socket_state *st, u32 bytes)
{
	u64 behind;

	if (st->turns != 1) {
		if (!speaks_to_broker(st))
			return;
		if (!st->turn_bytes)
			st->opening = packets_of_turn(st->opening);
		st->opening = follow_packets(st->opening, st->turns, bytes);
		if (several_packets_ask(st->opening))
			st->overlap = true;
		return;
	}
	/* What follows a proxy's header that was read by itself. */
	if (st->tls == TLS_PROXIED && st->turn_bytes && st->turn_bytes == st->read_bytes) {
		st->opening = part_of_opening(0, bytes);
		return;
	}
	if (st->turn_bytes >= OPENING_BYTES || st->tls != TLS_NONE)
		return;
	if (!st->turn_bytes)
		st->opening = 0;
	st->opening |= part_of_opening(st->turn_bytes, bytes);
	if (!st->turn_bytes && is_proxy_opening(st->opening)) {
		behind = opening_behind_proxy(bytes);
		if (behind)
			st->opening = behind;
	}
}

/*
 * A turn begins: was the first one of the connection to a broker? Or was it of HTTP, and does the connection
 * go on with WebSocket?
 */
static __always_inline void note_greeting(struct socket_state *st, u32 bytes)
{
	u64 next;
	u8 turns;

	if (!st->turns || st->turns >= TLS_TURNS || st->tls != TLS_NONE)
		return;
	if ((u32)st->opening == HTTP_GET) {
		if (is_websocket(part_of_opening(0, bytes), bytes)) {
			st->turns = WEBSOCKET_TURNS;
			st->opening = 0;
		}
		return;
	}
	if (st->turns != 1)
		return;
	next = st->opening == NATS_GREETING ? part_of_opening(0, bytes) : 0;
	turns = greeted_broker(st->opening, next);
	if (!turns)
		return;
	st->turns = turns;
	st->opening = 0;
}
