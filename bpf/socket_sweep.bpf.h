/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Events without a hook: messages that nobody answers, and connections whose end was missed. User space runs
 * these iterators every few seconds. A kernel without type information has no iterators; there user space
 * runs programs that get some keys at a time.
 */
#pragma once

#include "socket_binding.bpf.h"
#include "socket_datagram.bpf.h"

#define IDLE_RING_NS 60000000000ULL

/* As many arguments as a program can have (MAX_BPF_FUNC_ARGS). */
#define TACHO_KEYS_PER_RUN 12

struct sweeping {
	struct datagram_ring *ring;
	u64 now;
};

/* Of the ring of the socket with that number. */
static __always_inline bool find_sweeping(struct sweeping *sweeping, u64 number)
{
	sweeping->ring = bpf_map_lookup_elem(&datagram_rings, &number);
	sweeping->now = bpf_ktime_get_ns();
	return sweeping->ring;
}

static long forget_slot(u32 index, struct sweeping *sweeping)
{
	struct datagram_ring *ring = sweeping->ring;
	struct datagram_slot *slot = &ring->slots[index % DATAGRAM_SLOTS];
	u32 read = slot->read, open = slot->open;
	/* What was read since we looked at the clock is not old. */
	s64 age = sweeping->now - read_at(slot);

	if (!read || read & READ_FORGOTTEN || !open || age <= (s64)DATAGRAM_PATIENCE_NS)
		return 0;
	slot->read = read | READ_FORGOTTEN;
	if (slot->source == ADDRESS_UNKNOWN)
		ring->gone += take_from(&ring->anonymous, open);
	forget(ring, open);
	return 0;
}

DEFINE_LOOP(forget_slots, forget_slot, struct sweeping, find_sweeping)

/* Requests that wait too long become messages that get no reply. */
static __always_inline void forget_old(struct datagram_ring *ring, u64 number, u64 now)
{
	u32 gone = 0;

	forget_slots(number, DATAGRAM_SLOTS);
	if (elapsed(ring->last_read, now) > DATAGRAM_PATIENCE_NS) {
		/* Where nothing more was read all of them are old. */
		gone = unbury(ring, ring->buried[0] + ring->buried[1]);
		ring->gone += take_from(&ring->anonymous, gone);
	} else if (now - ring->turned > DATAGRAM_PATIENCE_NS) {
		u32 buried = ring->buried[1];

		ring->gone += take_from(&ring->anonymous, buried);
		gone = take_from(&ring->buried[1], buried);
		buried = take_from(&ring->buried[0], ring->buried[0]);
		__sync_fetch_and_add(&ring->buried[1], buried);
		ring->turned = now;
	}
	forget(ring, gone);
}

/* A global function: the verifier works through it once, for whichever ring. */
__noinline int sweep_ring(u64 number)
{
	struct datagram_ring *ring = bpf_map_lookup_elem(&datagram_rings, &number);
	u64 now = bpf_ktime_get_ns();

	if (!ring)
		return 0;
	if (ring->open)
		forget_old(ring, number, now);
	else if (now - ring->touched > IDLE_RING_NS)
		bpf_map_delete_elem(&datagram_rings, &number);
	return 0;
}

SEC("iter/bpf_map_elem")
int socket_sweep_datagrams(struct bpf_iter__bpf_map_elem *ctx)
{
	u64 *number = ctx->key;

	if (number)
		sweep_ring(*number);
	return 0;
}

/* A message that is read and stays without a reply for so long is looked at, and forgotten so much later. */
#define TURN_LOOKED_AT_NS 2000000000ULL
#define TURN_PATIENCE_NS 5000000000ULL
/* Of HTTP/2 under TLS, what is no request: SETTINGS acknowledged, WINDOW_UPDATE, PING. */
#define HTTP2_CONTROL_BYTES 48

/*
 * Is nothing owed for what was read? A request that the server works on for a minute is in flight. Only where
 * its thread waits for more from this very client, and did not so while it answered earlier, it is done.
 */
static __always_inline bool owes_nothing(struct sock *sk, const struct socket_state *st,
					 const struct tcp_sock *tp)
{
	if (tp && (FIELD(tp, rcv_nxt) != FIELD(tp, copied_seq) || is_being_answered(st, tp)))
		return false;
	if (st->many && st->turn_bytes <= HTTP2_CONTROL_BYTES)
		return true;
	return st->alternates && is_waited_for(sk);
}

static __always_inline void sweep_turn(struct sock *sk, struct socket_state *st, u64 now)
{
	u64 seen = LEFT_SEEN | st->turn, age = elapsed(st->last_read, now);
	struct socket_shard *shared;

	if (st->role != TACHO_ROLE_SERVER || !is_open(st) || is_counted_late(st) || age < TURN_LOOKED_AT_NS ||
	    st->left_waiting == (LEFT_FORGOTTEN | st->turn))
		return;
	if (!owes_nothing(sk, st, tcp_sock_of(sk))) {
		replace(&st->left_waiting, seen, 0);
		return;
	}
	if (st->left_waiting != seen) {
		*(volatile u64 *)&st->left_waiting = seen;
		return;
	}
	shared = age < TURN_PATIENCE_NS ? NULL : get_shared_shard(&st->target);
	if (!shared || !replace(&st->left_waiting, seen, LEFT_FORGOTTEN | st->turn))
		return;
	release_reader(st);
	add_atomic(&shared->oneway, 1);
	add_atomic(&shared->dismissed, 1);
}

/* A connection that ended counts as ended, whichever hook was kept from us. */
static __always_inline void sweep_socket(struct sock *sk, struct socket_state *st)
{
	sweep_turn(sk, st, bpf_ktime_get_ns());
	if ((st->counted || is_open(st)) && (is_tcp(sk) || is_mptcp(sk)) &&
	    FIELD(sk, __sk_common.skc_state) == TCP_CLOSE)
		count_closed(st, sk, END_IS_OVER);
}

#if !SOCKET_STORAGE
__noinline int sweep_state(u64 address)
{
	struct socket_state *st = bpf_map_lookup_elem(&socket_states, &address);

	if (st)
		sweep_socket((struct sock *)address, st);
	return 0;
}

SEC("iter/bpf_map_elem")
int socket_sweep_states(struct bpf_iter__bpf_map_elem *ctx)
{
	u64 *address = ctx->key;

	if (address)
		sweep_state(*address);
	return 0;
}

#else
SEC("iter/bpf_sk_storage_map")
int socket_sweep_states(struct bpf_iter__bpf_sk_storage_map *ctx)
{
	struct socket_state *st = ctx->value;
	struct sock *sk = ctx->sk;

	if (sk && st)
		sweep_socket(sk, st);
	return 0;
}
#endif

/*
 * The same where a kernel has no iterator over maps, or refuses it: by way of all open files. What several
 * processes have open is visited several times.
 */
SEC("iter/task_file")
int socket_sweep_files(struct bpf_iter__task_file *ctx)
{
	struct file *file = ctx->file;
	struct sock *sk = file && ctx->task ? sock_of_file(file) : NULL;
	struct socket_state *st = sk ? state_of(sk) : NULL;

	if (st)
		sweep_socket(sk, st);
	return 0;
}

/*
 * The keys are the arguments, as those of a tracepoint; 0 is none. An argument is read at a place that the
 * verifier knows.
 */
#define SWEEP_KEYS(name, sweep)                                                                              \
	SEC("raw_tp")                                                                                        \
	int name(u64 *keys)                                                                                  \
	{                                                                                                    \
		_Pragma("unroll") for (u32 i = 0; i < TACHO_KEYS_PER_RUN; i++) if (keys[i]) sweep(keys[i]);  \
		return 0;                                                                                    \
	}

SWEEP_KEYS(socket_sweep_datagram_keys, sweep_ring)
#if !SOCKET_STORAGE
SWEEP_KEYS(socket_sweep_state_keys, sweep_state)
#endif
