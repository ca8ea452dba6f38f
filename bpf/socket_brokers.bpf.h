/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Clients of message brokers. A subscriber acknowledges each delivery at once, and gets no reply to that: the
 * next delivery would look like the reply, however late it is sent. Timing does not distinguish such a client
 * from one that asks and waits. Its protocol does, in the clear: MQTT (OASIS, 3.1, 3.4, 3.7) and AMQP (0-9-1,
 * 2.3).
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

/* The turn is answered, as it seems: does it bring nothing but acknowledgements? */
static __always_inline bool only_acknowledges(const struct socket_state *st)
{
	u64 opening = st->opening;
	u32 bytes = st->turn_bytes;

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

/* A turn begins: is the one before the first of a connection to a broker? */
static __always_inline void note_greeting(struct socket_state *st)
{
	if (st->turns == 1 && st->tls == TLS_NONE && greets_broker(st->opening))
		st->turns = BROKER_TURNS;
}
