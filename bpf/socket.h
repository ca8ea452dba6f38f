/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* What the socket probe's programs share with user space. */
#pragma once

#include "lib/histogram.h"

#include <linux/types.h>

enum socket_direction {
	TACHO_SEND = 0,
	TACHO_RECEIVE = 1,
	TACHO_DIRECTIONS = 2,
};

enum socket_role {
	TACHO_ROLE_NONE = 0,
	TACHO_ROLE_LISTENER,
	TACHO_ROLE_SERVER,
	TACHO_ROLE_CLIENT,
	TACHO_ROLE_OTHER,   /* operations count, turns do not */
	TACHO_ROLE_IGNORED, /* a server socket on a port that the target does not name */
};

/*
 * The operations of a whole target in one direction. `begin` and `end` bracket a change, so that a reader can tell
 * a torn read: it takes `end` first and `begin` last, and they must be equal. Squares are 128 bit.
 */
struct socket_moments {
	__u64 begin;
	__u64 operations;
	__u64 bytes;
	__u64 intervals;
	__s64 interval_ns;
	__u64 square_low;
	__u64 square_high;
	__u64 idle_gaps;
	__u64 idle_gap_ns;
	__u64 end;
};

/* One shard of a target's block (lib/accumulate.bpf.h). */
struct socket_shard {
	struct socket_moments moments[TACHO_DIRECTIONS];
	struct duration_histogram queue;    /* its count is that of turns opened */
	struct duration_histogram service;
	struct duration_histogram duration; /* its count is that of requests answered */
	struct duration_histogram reply;
	struct duration_histogram accept_wait;
	__u64 unanswered;
	__u64 overlapped_turns; /* data was waiting unread when the reply went out */
	__u64 connections_opened[2]; /* server, client */
	__u64 connections_closed[2];
};

/* Time of the target's latest operation in each direction, shared by all its threads; a cache line each. */
struct socket_chain {
	__u64 last;
	__u64 pad[7];
};

struct socket_chains {
	struct socket_chain direction[TACHO_DIRECTIONS];
};

/* A TCP port somebody listens on: tells server sockets from client sockets where their birth was not seen. */
struct listening_port {
	__u32 network; /* inode number of the network namespace */
	__u16 port;    /* host order */
	__u16 pad;
};
