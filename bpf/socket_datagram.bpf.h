/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Requests and replies of datagram servers.
 *
 * Many requests may be open on one socket. Which of them a send answers is not known at this layer; they are
 * taken to be answered in the order of their receipt. Whatever the true order, the number and the sum of the
 * durations are the same, only their distribution is narrower. A request that gets no reply is forgotten
 * after some time.
 */
#pragma once

#include "socket_state.bpf.h"

#define DATAGRAM_SLOTS 256
#define DATAGRAM_PATIENCE_NS 5000000000ULL

struct datagram_request {
	u64 arrival;
	u64 read;
};

/* Counters modulo 2^32; their differences are what is waiting. */
struct datagram_state {
	u32 arrived;
	u32 taken; /* of the arrivals */
	u32 received;
	u32 answered;
	u64 arrivals[DATAGRAM_SLOTS];
	struct datagram_request requests[DATAGRAM_SLOTS];
};

#ifdef TACHO_BASIC
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1024);
	__type(key, u64);
	__type(value, struct datagram_state);
} datagram_states SEC(".maps");

/* What a new state begins as: too large for the stack. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct datagram_state);
} no_datagrams SEC(".maps");

static __always_inline struct datagram_state *find_datagrams(struct sock *sk)
{
	u64 key = (u64)sk;
	u32 zero = 0;
	struct datagram_state *ds = bpf_map_lookup_elem(&datagram_states, &key);
	struct datagram_state *none;

	if (ds)
		return ds;
	none = bpf_map_lookup_elem(&no_datagrams, &zero);
	if (none)
		bpf_map_update_elem(&datagram_states, &key, none, BPF_NOEXIST);
	return bpf_map_lookup_elem(&datagram_states, &key);
}

static __always_inline void drop_datagrams(u64 key)
{
	bpf_map_delete_elem(&datagram_states, &key);
}
#else
struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct datagram_state);
} datagram_states SEC(".maps");

static __always_inline struct datagram_state *find_datagrams(struct sock *sk)
{
	struct datagram_state *ds =
	    bpf_sk_storage_get(&datagram_states, sk, NULL, BPF_SK_STORAGE_GET_F_CREATE);

	/* Two datagrams may arrive at once: the loser takes what the winner has made. */
	return ds ? ds : bpf_sk_storage_get(&datagram_states, sk, NULL, 0);
}
#endif

static __always_inline struct datagram_state *datagrams_of(struct sock *sk)
{
	struct datagram_state *ds = find_datagrams(sk);

	if (!ds)
		count_loss(TACHO_LOST_SOCKET_STATE);
	return ds;
}

static __always_inline void datagram_arrived(struct sock *sk, u64 now)
{
	struct datagram_state *ds = datagrams_of(sk);

	if (ds)
		ds->arrivals[fetch_add_u32(&ds->arrived, 1) % DATAGRAM_SLOTS] = now;
}

static __always_inline bool nothing_to_receive(struct sock *sk)
{
	return !BPF_CORE_READ(sk, sk_receive_queue.qlen) &&
	       !BPF_CORE_READ((struct udp_sock *)sk, reader_queue.qlen);
}

/* When the datagram that has just been received had come; datagrams are received in the order of their
 * arrival. */
static __always_inline u64 take_arrival(struct sock *sk, struct datagram_state *ds, u64 now)
{
	u32 waiting = ds->arrived - ds->taken;
	u64 arrival = now;

	if (waiting > DATAGRAM_SLOTS && waiting < 1U << 31) {
		/* Older ones are overwritten: a lower bound of the time it waited. */
		ds->taken = ds->arrived - DATAGRAM_SLOTS;
		waiting = DATAGRAM_SLOTS;
	}
	if (waiting && waiting <= DATAGRAM_SLOTS)
		arrival = ds->arrivals[fetch_add_u32(&ds->taken, 1) % DATAGRAM_SLOTS];
	/* A datagram that was dropped after it had come (a wrong checksum) must not shift all later ones. */
	if (nothing_to_receive(sk))
		ds->taken = ds->arrived;
	return arrival ? arrival : now;
}

static __always_inline void datagram_received(struct sock *sk, struct socket_shard *shard, u64 now)
{
	struct datagram_state *ds = datagrams_of(sk);
	struct datagram_request *request;
	u64 arrival;

	if (!ds)
		return;
	arrival = take_arrival(sk, ds, now);
	request = &ds->requests[fetch_add_u32(&ds->received, 1) % DATAGRAM_SLOTS];
	request->arrival = arrival;
	request->read = now;
	add(&shard->opened, 1);
	observe(&shard->queue, elapsed(arrival, now));
}

static __always_inline void datagram_sent(struct sock *sk, struct socket_shard *shard, u64 now)
{
	struct datagram_state *ds = datagrams_of(sk);
	struct datagram_request *request;
	u32 number, waiting;

	if (!ds)
		return;
	for (int i = 0; i < 32; i++) {
		waiting = ds->received - ds->answered;
		if (!waiting || waiting >= 1U << 31)
			return;
		number = fetch_add_u32(&ds->answered, 1);
		request = &ds->requests[number % DATAGRAM_SLOTS];
		if (waiting > DATAGRAM_SLOTS) {
			/* Its times are overwritten. */
			add(&shard->unanswered, 1);
			continue;
		}
		if (now - request->read > DATAGRAM_PATIENCE_NS && request->read < now) {
			add(&shard->unanswered, 1);
			continue;
		}
		observe(&shard->service, elapsed(request->read, now));
		observe(&shard->duration, elapsed(request->arrival, now));
		return;
	}
}
