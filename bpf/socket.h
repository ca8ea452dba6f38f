/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Shared by the socket probe's programs and user space. */
#pragma once

#include "anatomy.h"
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
	TACHO_ROLE_DATAGRAM,	    /* serves some peers and calls others */
	TACHO_ROLE_DATAGRAM_SERVER, /* all of its peers */
	TACHO_ROLE_DATAGRAM_CLIENT,
	TACHO_ROLE_OTHER,   /* its operations are counted, its turns are not */
	TACHO_ROLE_IGNORED, /* a server socket on a port that the target does not name */
	/* Connections of the node itself that the target leaves out (socket_node.bpf.h). */
	TACHO_ROLE_NODE_SERVER,
	TACHO_ROLE_NODE_CLIENT,
};

/* One connection in so many is not put aside, where the others are (TACHO_SHED_SOCKETS). */
#define TACHO_CHOSEN_CONNECTIONS 16

/*
 * The operations of a whole target in one direction. `begin` and `end` bracket a change, so that a reader can
 * detect a torn read: it reads `end` first and `begin` last, and they must be equal. Squares are 128 bit.
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
	struct duration_histogram queue;
	struct duration_histogram receive; /* only of requests that came in more than one piece */
	struct duration_histogram service;
	struct fine_histogram duration; /* its count is that of requests answered */
	struct duration_histogram reply;
	struct duration_histogram accept_wait;
	__u64 opened; /* turns; those not answered, dismissed or unanswered are in flight */
	__u64 unanswered;
	__u64 oneway;		/* messages that got no reply */
	__u64 handshakes;	/* turns of TLS handshakes, which no histogram counts */
	__u64 dismissed;	/* turns opened that were no requests after all, or */
	__u64 unseen_replies;	/* were answered, and no hook has seen by whom */
	__u64 calls_overlapped; /* begun while another one to the same peer was open */
	__u64 sampled_calls;	/* on streams, that were examined for several of them at a time */
	__u64 repeated_calls;	/* of these, with more than one */
	__u64 overlapped_turns; /* data was waiting unread when the reply went out */
	__u64 sampled_turns;	/* that were examined for several requests in one read */
	__u64 repeated_turns;	/* of these, with more than one */
	__u64 looked;		/* time of the last examination; and what selects the next turn */
	__u32 look_in;
	__u16 look_mask;
	__u16 looks_in_a_row;
	__u64 multiplexed_connections; /* with several requests at a time, detected or expected */
	__u64 connections_opened[2];   /* server, client */
	__u64 connections_closed[2];
	__u64 node_requests[2]; /* of the node itself, in no other count: answered by the target, answered to
				   it */
	__u64 told_least;	/* of the requests recorded one by one, see socket_recorder.bpf.h */
	__u32 told;
	__u32 told_round;
	struct duration_histogram handover;
	struct request_parts parts[2]; /* of requests that were not slow, and of slow ones */
	/* While connections are put aside: operations of servers on those that are, and on the others. */
	__u64 aside;
	__u64 chosen;
	__u64 followed; /* operations whose frames of HTTP/2 were looked at */
	__u64 own_ns;	/* estimated time of the programs, see lib/own_time.bpf.h */
};

/* Time of the target's latest operation in each direction, shared by all its threads; a cache line each. */
struct socket_chain {
	__u64 last;
	__u64 pad[7];
};

/* One element per target index. */
struct socket_chains {
	struct socket_chain direction[TACHO_DIRECTIONS];
	__u32 peers;	  /* dependency slots that were given out */
	__u32 spare;	  /* one of them that was returned; 0: none */
	__u64 slow_ns;	  /* set by user space: a request that takes longer is slow; 0: none is */
	__u64 unrecorded; /* requests for whose record there was no room */
	struct record_thresholds record;
	__u32 connections; /* for which was decided whether they are put aside, see socket_sampling.bpf.h */
	__u32 choice;	   /* set by user space: it is decided anew whenever this changes */
	__u64 adopted_at;  /* set by user space: all sockets that are older than the target were visited; 0:
			      not yet */
};

/* A TCP port with a listener: distinguishes servers' from clients' sockets whose beginning was missed. */
struct listening_port {
	__u32 network; /* inode number of the network namespace */
	__u16 port;    /* host order */
	__u16 pad;
};

#define TACHO_PEER_ADDRESS 108
/* A family of peer_address: its address is the index, a __u32, of a configured name. */
#define TACHO_PEER_NAMED 0xffff

/* A key of map `peer_networks`; IPv4 addresses stand as IPv4-mapped IPv6. */
struct peer_network {
	__u32 prefix_bits;
	__u8 address[16];
};

/* A peer that a target calls. */
struct peer_address {
	__u16 family;			  /* AF_INET, AF_INET6, AF_UNIX, TACHO_PEER_NAMED; 0: unknown */
	__u16 port;			  /* host order */
	__u8 address[TACHO_PEER_ADDRESS]; /* 4 or 16 bytes, or a path; the first byte of an abstract one is
					     NUL */
};

struct peer_key {
	__u32 index; /* of the target */
	__u32 epoch;
	struct peer_address peer;
};

/* Calls to one peer: an element of a target's array in map `dependency_blocks`. Element 0 is all peers beyond
 * max_peers. */
struct dependency {
	struct duration_histogram duration; /* its count is that of calls */
	__u64 in_line_ns; /* from the last send to the read of the answer, by threads that had a request to
			     answer */
	struct peer_address peer; /* family is written last */
	__u32 pad;
};
