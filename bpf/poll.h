/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Shared by the poll probe's programs and user space. */
#pragma once

#include "lib/histogram.h"

#include <linux/types.h>

enum poll_outcome {
	TACHO_POLL_READY,
	TACHO_POLL_TIMEOUT,
	TACHO_POLL_NONBLOCKING, /* called with a timeout of zero, whatever it returned */
	TACHO_POLL_ERROR,
	TACHO_POLL_BLOCKED, /* it slept, whatever it returned: that is all that the scheduler tells */
	TACHO_POLL_OUTCOMES,
};

/*
 * One shard of a target's block (lib/accumulate.bpf.h). A wait may begin on one CPU and end on another:
 * `waiters` and `started_ns` mean something only as the sum over all shards (modulo 2^64). Then waiters * now
 * - started_ns is the time that the waits in progress have lasted, and those that are over and in no
 * histogram yet (poll_switch.bpf.h). `begin` and `end` bracket a change of these two and of the sum, as in
 * struct socket_moments.
 */
struct poll_shard {
	struct duration_histogram duration; /* of all calls */
	__u64 completed[TACHO_POLL_OUTCOMES];
	__u64 begin;
	__u64 waiters;
	__u64 started_ns;
	__u64 end;
	__u64 threads; /* that have called poll, less those that have exited */
	__u64 own_ns;  /* estimated time of the programs, see lib/own_time.bpf.h */
};
