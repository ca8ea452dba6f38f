/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* What a request's time went to, and who served it; shared with user space. */
#pragma once

#include <linux/types.h>

/*
 * The parts of a request's duration; each moment of it is in one of them. From `handover` on they are those
 * of its service time, and from `runqueue` on what the thread that worked on it waited for.
 */
enum request_part {
	TACHO_PART_QUEUE,    /* it waited in the socket */
	TACHO_PART_RECEIVE,  /* its first bytes were read, the last ones were not */
	TACHO_PART_HANDOVER, /* read by one thread, and the one that answered had not begun */
	TACHO_PART_CPU,
	TACHO_PART_RUNQUEUE,
	TACHO_PART_LOCK,
	TACHO_PART_DISK,
	TACHO_PART_NETWORK,
	TACHO_PART_EVENT,
	TACHO_PART_SLEEP,
	TACHO_PART_OTHER,
	TACHO_PARTS,
};

/* The last ones, in which a thread does not run. */
#define TACHO_FIRST_WAIT TACHO_PART_RUNQUEUE
#define TACHO_WAITS (TACHO_PARTS - TACHO_FIRST_WAIT)

enum serving_mode {
	TACHO_SERVED_BY_READER,	  /* who read it answered it, and had no other request open meanwhile */
	TACHO_SERVED_HANDED_OVER, /* another thread answered it */
	TACHO_SERVED_INTERLEAVED, /* who read it answered it, with other requests open */
	TACHO_SERVING_MODES,	  /* all other requests: nothing is known of their parts */
};

struct request_parts {
	__u64 ns[TACHO_PARTS];
	__u64 requests[TACHO_SERVING_MODES];
	__u64 pad[2]; /* a power of two of bytes, so that the verifier can tell one of several from what is
			 behind */
};

/* What a call that a thread sleeps in waits for: a part, or this: it depends on what is read or written. */
#define TACHO_WAITS_FOR_FILE 255
