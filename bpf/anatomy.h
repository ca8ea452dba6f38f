/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* The parts of a request's time, and how threads served it; shared with user space. */
#pragma once

#include <linux/types.h>

/*
 * The parts of a request's duration; each moment of it is in one of them. From `handover` on they are parts
 * of its service time; from `runqueue` on they are waits of the thread that worked on it.
 */
enum request_part {
	TACHO_PART_QUEUE,    /* it waited in the socket */
	TACHO_PART_RECEIVE,  /* its first bytes were read, its last ones were not */
	TACHO_PART_HANDOVER, /* read by one thread, but the answering thread had not begun */
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
	TACHO_SERVED_BY_READER,	  /* the thread that read it answered it, with no other request open */
	TACHO_SERVED_HANDED_OVER, /* another thread answered it */
	TACHO_SERVED_INTERLEAVED, /* the thread that read it answered it, with other requests open */
	TACHO_SERVING_MODES,	  /* all other requests: their parts are unavailable */
};

struct request_parts {
	__u64 ns[TACHO_PARTS];
	__u64 requests[TACHO_SERVING_MODES];
	__u64 pad[2]; /* a power of two of bytes, so that the verifier can tell one of several from what is
			 behind */
};

#define TACHO_THREAD_NAME 16

/* One of the slowest requests; a record of ring buffer `slow_records`. */
struct request_record {
	__u64 ended; /* when its reply's first byte left, CLOCK_MONOTONIC */
	__u64 duration;
	__u64 ns[TACHO_PARTS];
	__u64 calls_ns; /* in calls that the thread made meanwhile, where it had read the request itself */
	__u64 longest_call_ns;	 /* of these */
	__u32 longest_call_peer; /* its dependency slot */
	__u32 calls;
	__u32 target; /* index */
	__u32 epoch;
	__u32 mode;   /* enum serving_mode */
	__u32 thread; /* number, in the first PID namespace */
	char thread_name[TACHO_THREAD_NAME];
	__u32 bytes;  /* of the request */
	__u32 reply;  /* bytes of the send that began the reply */
	__u16 family; /* of the client: AF_INET, AF_INET6; others have no address */
	__u16 port;   /* host order */
	__u8 address[16];
};

/* At least this number of a target's slowest requests is recorded, whatever happens between two readings of
 * user space. */
#define RECORDS_A_STEP 16

/*
 * The requests that are recorded one by one are those that take as long as the threshold of the minute in
 * which they end, or longer. The next minute's threshold is set before it begins, so that the programs need
 * not wait until user space notices the beginning.
 */
struct record_thresholds {
	__u64 ns[2];  /* of this minute and of the next; 0: none is recorded */
	__u64 minute; /* when the current minute ends, an even number; plus which of `ns` is this minute's */
	__u64 begins; /* when it began: a request that ended before is recorded, however short */
};

static inline __u32 is_of_next_minute(__u64 minute, __u64 ended)
{
	return ended >= (minute & ~1ULL);
}

/* Index of the threshold for what ended then. */
static inline __u32 record_threshold_of(__u64 minute, __u64 ended)
{
	return (minute & 1) ^ is_of_next_minute(minute, ended);
}

/* The part that a sleep in a system call belongs to; or this: it depends on the file that is read or written.
 */
#define TACHO_WAITS_FOR_FILE 255
