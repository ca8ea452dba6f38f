/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Clients of message brokers, and of WebSocket. A subscriber acknowledges each delivery at once, and gets no
 * reply to that: the next delivery would look like the reply, however late it is sent. Timing does not
 * distinguish such a client from one that asks and waits. Its protocol does, in the clear: MQTT
 * (OASIS, 3.1, 3.4, 3.7) and AMQP (0-9-1, 2.3).
 *
 * A server may read byte by byte, so the first bytes of a turn are gathered: those of a connection's first
 * turn, and those of all turns if the first one is a broker's client. A message of such a client is in flight
 * only once it has been answered.
 */
#pragma once

#include "socket_buffers.bpf.h"
#include "socket_handshake.bpf.h"
#include "socket_state.bpf.h"

/* In place of the number of turns: the client speaks to a broker. */
#define BROKER_TURNS 0xfe
#define OPENING_BYTES 8

/* CONNECT, of a length of one byte or two, then the name of the protocol: "MQTT", before 3.1.1 "MQIsdp". */
#define MQTT_CONNECT 0x10
#define MQTT_NAME 0x54514d0400ULL
#define MQTT_OLD_NAME 0x49514d0600ULL
#define MQTT_NAME_MASK 0xffffffffffULL
#define MQTT_LONG 0x80
/* PUBACK and PUBCOMP, each of two bytes and a packet's number. */
#define MQTT_PUBACK 0x0240
#define MQTT_PUBCOMP 0x0270
#define MQTT_ACK_BYTES 4
/* "AMQP", 0, 0, 9, 1. */
#define AMQP_GREETING 0x0109000050514d41ULL
/* A frame with a method of 13 bytes, on any channel: basic.ack and its like. One without any: a heartbeat. */
#define AMQP_METHOD 1
#define AMQP_ACK_LENGTH 0x0d000000
#define AMQP_ACK_BYTES 21
#define AMQP_HEARTBEAT 8
#define AMQP_HEARTBEAT_BYTES 8

static __always_inline bool names_mqtt(u64 name)
{
	name &= MQTT_NAME_MASK;
	return name == MQTT_NAME || name == MQTT_OLD_NAME;
}

static __always_inline bool greets_broker(u64 opening)
{
	if ((u8)opening == MQTT_CONNECT)
		return names_mqtt(opening & MQTT_LONG << 8 ? opening >> 24 : opening >> 16);
	return opening == AMQP_GREETING;
}

/*
 * WebSocket (RFC 6455, 5.2), after an upgrade by a GET: the client's frames have a bit for the end of a
 * message, a type of four bits, and a mask of four bytes behind a length that is short in frames of control.
 */
#define HTTP_GET 0x20544547
#define WEBSOCKET_LAST 0x80
#define WEBSOCKET_TYPE 0xf
#define WEBSOCKET_BINARY 2
#define WEBSOCKET_CLOSE 8
#define WEBSOCKET_PING 9
#define WEBSOCKET_PONG 10
#define WEBSOCKET_MASKED 0x80
#define WEBSOCKET_HEADER 6

/* Does what follows a GET begin with such a frame? `bytes` of it are known. */
static __always_inline bool is_websocket(u64 opening, u32 bytes)
{
	u8 type = opening & WEBSOCKET_TYPE;

	if (!(opening & WEBSOCKET_LAST) || (bytes > 1 && !(opening >> 8 & WEBSOCKET_MASKED)))
		return false;
	return type <= WEBSOCKET_BINARY || (type >= WEBSOCKET_CLOSE && type <= WEBSOCKET_PONG);
}

/* A whole frame that keeps the connection alive: a client's ping, or its answer to the server's. */
static __always_inline bool keeps_alive(u64 opening, u32 bytes)
{
	u8 first = opening, second = opening >> 8;

	return (first == (WEBSOCKET_LAST | WEBSOCKET_PING) || first == (WEBSOCKET_LAST | WEBSOCKET_PONG)) &&
	       second & WEBSOCKET_MASKED && bytes == WEBSOCKET_HEADER + (second & ~WEBSOCKET_MASKED);
}

/* The turn is answered, as it seems: does it bring nothing but acknowledgements? */
static __always_inline bool only_acknowledges(const struct socket_state *st)
{
	u64 opening = st->opening;
	u32 bytes = st->turn_bytes;

	if (keeps_alive(opening, bytes))
		return true;
	if ((u16)opening == MQTT_PUBACK || (u16)opening == MQTT_PUBCOMP)
		return bytes % MQTT_ACK_BYTES == 0;
	if ((u8)opening == AMQP_HEARTBEAT)
		return bytes == AMQP_HEARTBEAT_BYTES;
	return (u8)opening == AMQP_METHOD && (u32)(opening >> 24) == AMQP_ACK_LENGTH &&
	       bytes % AMQP_ACK_BYTES == 0;
}

static __always_inline bool speaks_to_broker(const struct socket_state *st)
{
	return st->turns == BROKER_TURNS;
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

/* Something is read in the open turn. */
static __always_inline void gather_opening(struct socket_state *st, u32 bytes)
{
	if (st->turn_bytes >= OPENING_BYTES || st->tls != TLS_NONE ||
	    (st->turns != 1 && !speaks_to_broker(st)))
		return;
	if (!st->turn_bytes)
		st->opening = 0;
	st->opening |= part_of_opening(st->turn_bytes, bytes);
}

/*
 * A turn begins: was the first one of the connection to a broker? Or was it of HTTP, and does the connection
 * go on with WebSocket?
 */
static __always_inline void note_greeting(struct socket_state *st, u32 bytes)
{
	if (!st->turns || st->turns >= TLS_TURNS || st->tls != TLS_NONE)
		return;
	if (st->turns == 1 && greets_broker(st->opening))
		st->turns = BROKER_TURNS;
	else if ((u32)st->opening == HTTP_GET && is_websocket(part_of_opening(0, bytes), bytes))
		st->turns = BROKER_TURNS;
}
