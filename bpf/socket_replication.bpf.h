/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Replicas and standbys. The server sends them its changes, unasked. Their messages in between (how far they
 * have come) get no reply: the next change would look like one, and the request would last until something
 * changes.
 *
 * Timing does not distinguish a replica from a client that asks and waits: its next message, too, follows
 * right behind what was sent. So it is detected by the beginning of its first messages: redis' REPLCONF,
 * PostgreSQL's START_REPLICATION. Later messages are no requests. Under TLS this is not visible. What
 * archives PostgreSQL's log logs in and asks for settings before: its tenth message begins the stream.
 */
#pragma once

#include "socket_buffers.bpf.h"
#include "socket_handshake.bpf.h"
#include "socket_state.bpf.h"

#define REPLICATION_BYTES 16
/* "*3\r\n$8\r\n", of any number of words, then "REPLCONF". */
#define REDIS_WORD 0x0a0d38240a0d002aULL
#define REDIS_WORD_MASK 0xffffffffffff00ffULL
#define REDIS_REPLCONF 0x464e4f434c504552ULL
/* A query ('Q') behind whose length stands "START_REP". */
#define POSTGRES_QUERY 'Q'
#define POSTGRES_START 0x45525f5452415453ULL

/* A global function: verified once a program. */
__noinline u32 asks_for_replication(u32 bytes)
{
	const void *buffer = first_buffer(NULL);
	u64 head[REPLICATION_BYTES / sizeof(u64)] = {};

	if (!buffer || bytes < REPLICATION_BYTES || bpf_probe_read_user(head, sizeof(head), buffer))
		return false;
	if ((head[0] & REDIS_WORD_MASK) == REDIS_WORD)
		return head[1] == REDIS_REPLCONF;
	return (u8)head[0] == POSTGRES_QUERY && (head[0] >> 40 | head[1] << 24) == POSTGRES_START;
}

/* So many turns are looked at. */
#define REPLICATION_TURNS 32

/* In place of the number of turns: what is said here is none. */
#define REPLICA_TURNS 0xff

/* Not the first message of a connection: there both of them say who they are. */
static __always_inline bool is_replica(struct socket_state *st, u32 bytes)
{
	if (st->tls == TLS_NONE && st->turns && st->turn < REPLICATION_TURNS && asks_for_replication(bytes))
		st->turns = REPLICA_TURNS;
	return st->turns == REPLICA_TURNS;
}
