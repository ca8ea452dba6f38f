/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * The slowest requests of a target, one by one: user space retains the slowest few of each minute.
 *
 * A request is recorded if it took at least as long as the target's threshold in this minute. User space sets
 * the threshold once a second. In between, each shard raises it to the shortest of the RECORDS_A_STEP
 * requests that it has recorded since the minute began: that many took longer, so none of the minute's
 * slowest RECORDS_A_STEP is ever below the threshold.
 */
#pragma once

#include "socket_state.bpf.h"

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 65536); /* set before loading */
} slow_records SEC(".maps");

static __always_inline bool is_told_of(const struct socket_chains *chains, u64 ended, u64 duration)
{
	const struct record_thresholds *record = &chains->record;
	u64 least = record->ns[record_threshold_of(*(volatile u64 *)&record->minute, ended) & 1];

	if (!least)
		return false;
	return duration >= least || ended < record->begins;
}

static __always_inline void raise_threshold(struct socket_chains *chains, struct socket_shard *shard,
					    u64 ended, u64 duration)
{
	struct record_thresholds *record = &chains->record;
	u64 minute = *(volatile u64 *)&record->minute, *threshold;
	u32 round = (u32)(minute >> 16) << 1 | is_of_next_minute(minute, ended);

	if (ended < record->begins)
		return;
	if (shard->told_round != round) {
		shard->told_round = round;
		shard->told = 0;
	}
	if (!shard->told || duration < shard->told_least)
		shard->told_least = duration;
	if (++shard->told < RECORDS_A_STEP)
		return;
	shard->told = 0;
	threshold = &record->ns[record_threshold_of(minute, ended) & 1];
	if (shard->told_least > *threshold)
		*threshold = shard->told_least;
}

/* The client of the request, on TCP. */
static __always_inline void record_client(struct request_record *record, u64 socket)
{
	struct sock *sk = (struct sock *)socket;

	record->family = BPF_CORE_READ(sk, __sk_common.skc_family);
	if (record->family == AF_INET) {
		record->port = bpf_ntohs(BPF_CORE_READ(sk, __sk_common.skc_dport));
		BPF_CORE_READ_INTO((u32 *)record->address, sk, __sk_common.skc_daddr);
	} else if (record->family == AF_INET6) {
		record->port = bpf_ntohs(BPF_CORE_READ(sk, __sk_common.skc_dport));
		BPF_CORE_READ_INTO((struct in6_addr *)record->address, sk, __sk_common.skc_v6_daddr);
	}
}

/* In one go: Linux 5.10 forgets what a pointer to the record is once it has been on the stack. */
static __always_inline void record_request(struct socket_chains *chains, struct socket_shard *shard,
					   const struct socket_state *st, const struct thread_waits *waits,
					   u64 first, u64 duration, u32 mode)
{
	struct request_record *record = bpf_ringbuf_reserve(&slow_records, sizeof(*record), 0);

	if (!record) {
		add_atomic(&chains->unrecorded, 1);
		return;
	}
	__builtin_memset(record, 0, sizeof(*record));
	record->ended = first;
	record->duration = duration;
	__builtin_memcpy(record->ns, waits->spent, sizeof(record->ns));
	record->target = st->target.index;
	record->epoch = st->target.epoch;
	record->mode = mode;
	record->thread = (u32)bpf_get_current_pid_tgid();
	bpf_get_current_comm(record->thread_name, sizeof(record->thread_name));
	record->bytes = st->turn_bytes;
	record->reply = st->reply_bytes;
	if (st->reader == waits->key) {
		record->calls = waits->calls;
		record->calls_ns = waits->calls_ns;
		record->longest_call_ns = waits->longest_call_ns;
		record->longest_call_peer = waits->longest_call_peer;
	}
	record_client(record, st->socket);
	bpf_ringbuf_submit(record, 0);
	raise_threshold(chains, shard, first, duration);
}
