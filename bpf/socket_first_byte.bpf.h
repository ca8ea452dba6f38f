/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * The time at which the first byte of a reply left, if one blocking call sends the reply.
 *
 * The hook of a send runs when the call returns. A call that sends more than the send buffer holds returns
 * when the client has taken most of it, which may be seconds later. TCP counts the time in which it had
 * something to send (tcp_chrono, for TCP_INFO's tcpi_busy_time). Between two requests it has nothing to send,
 * so the growth of this clock since the request was read is the age of the reply's first byte. The clock runs
 * in jiffies; below some of them the end of the call is the better answer.
 *
 * A unix socket has no buffer of its own: within the call the other end is notified of each piece. MPTCP
 * sends by TCP sockets of its own, and a tracepoint tells of each piece that it gives to one. Where that is
 * missing (before Linux 5.13) the clock of the first of them is taken. It stands still while MPTCP's own
 * window is closed: then the first byte seems to leave that much later.
 */
#pragma once

#include "socket_state.bpf.h"

/* Set before loading: nanoseconds per jiffy; 0: not known. */
const volatile __u32 jiffy_ns = 0;

/* What fits into the smallest buffer that TCP begins with (net.ipv4.tcp_wmem). */
#define BLOCKING_SEND_BYTES 16384
#define BLOCKING_SEND_JIFFIES 3

/*
 * before: of what went before; what is under way does not count. so_far: that, too. For sockets that the
 * verifier knows, and for those that only an address tells of.
 */
#define BUSY_CLOCK(name, READ, READ_BITS)                                                                    \
	static __always_inline u32 name##_before(const struct tcp_sock *tp)                                  \
	{                                                                                                    \
		return READ(tp, chrono_stat[0]) + READ(tp, chrono_stat[1]) + READ(tp, chrono_stat[2]);       \
	}                                                                                                    \
	static __always_inline u32 name##_so_far(const struct tcp_sock *tp)                                  \
	{                                                                                                    \
		u32 running = READ_BITS(tp, chrono_type);                                                    \
                                                                                                             \
		return name##_before(tp) + (running ? (u32)bpf_jiffies64() - READ(tp, chrono_start) : 0);    \
	}

BUSY_CLOCK(busy, FIELD, BITFIELD)
BUSY_CLOCK(subflow_busy, BPF_CORE_READ, BPF_CORE_READ_BITFIELD_PROBED)

static __always_inline bool is_unix_stream(const struct socket_state *st)
{
	return st->close_unseen;
}

/* Up to where a multipath socket has been given what it sends. */
static __always_inline u32 mptcp_position(struct sock *sk)
{
	return BPF_CORE_READ((struct mptcp_sock *)sk, write_seq);
}

/* What is sent from now on may be the reply. */
static __always_inline void await_first_byte(struct socket_state *st, struct sock *sk,
					     const struct tcp_sock *tp)
{
	const struct tcp_sock *subflow;

	if (tp) {
		st->write_seq = FIELD(tp, write_seq);
		st->busy = busy_before(tp);
		return;
	}
	subflow = subflow_of(sk);
	if (subflow || is_unix_stream(st))
		st->first_out = 0;
	st->write_seq = subflow ? mptcp_position(sk) : 0;
	st->busy = subflow ? subflow_busy_before(subflow) : 0;
}

/* In nanoseconds, since the open turn began. */
static __always_inline u64 busy_time(const struct socket_state *st, struct sock *sk,
				     const struct tcp_sock *tp)
{
	const struct tcp_sock *subflow = tp ? NULL : subflow_of(sk);

	if (!tp && !subflow)
		return 0;
	return (u64)((tp ? busy_so_far(tp) : subflow_busy_so_far(subflow)) - st->busy) * jiffy_ns;
}

static __always_inline u64 first_byte_time(const struct socket_state *st, struct sock *sk,
					   const struct tcp_sock *tp, u64 now, u32 bytes)
{
	u64 shortest = (u64)jiffy_ns * BLOCKING_SEND_JIFFIES;
	u64 since_read, busy;

	if (is_unix_stream(st) || (!tp && is_mptcp(sk) && st->first_out))
		return st->first_out ? st->first_out : now;
	if (bytes <= BLOCKING_SEND_BYTES || !shortest)
		return now;
	since_read = elapsed(st->last_read, now);
	if (since_read < shortest)
		return now;
	busy = busy_time(st, sk, tp);
	if (busy < shortest)
		return now;
	return busy < since_read ? now - busy : st->last_read;
}
