/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * When the first byte of a reply left that one blocking call sends.
 *
 * The hook of a send runs when the call returns. A call that sends more than the send buffer holds returns
 * when the client has taken most of it, which may be seconds later. TCP keeps count of the time that it had
 * something to send (tcp_chrono, for TCP_INFO's tcpi_busy_time): between two requests it has nothing, so what
 * this clock has gained since the request was read is the age of the reply's first byte. It runs in jiffies;
 * below some of them the end of the call is the better answer.
 */
#pragma once

#include "socket_state.bpf.h"

/* Set before loading: nanoseconds per jiffy; 0: not known. */
const volatile __u32 jiffy_ns = 0;

/* What fits into the smallest buffer that TCP begins with (net.ipv4.tcp_wmem). */
#define BLOCKING_SEND_BYTES 16384
#define BLOCKING_SEND_JIFFIES 3

/* Of what went before; what is under way does not count. */
static __always_inline u32 busy_before(const struct tcp_sock *tp)
{
	return FIELD(tp, chrono_stat[0]) + FIELD(tp, chrono_stat[1]) + FIELD(tp, chrono_stat[2]);
}

static __always_inline u32 busy_so_far(const struct tcp_sock *tp)
{
	u32 busy = busy_before(tp);

#ifdef TACHO_BASIC
	if (BPF_CORE_READ_BITFIELD_PROBED(tp, chrono_type))
#else
	if (BPF_CORE_READ_BITFIELD(tp, chrono_type))
#endif
		busy += (u32)bpf_jiffies64() - FIELD(tp, chrono_start);
	return busy;
}

static __always_inline u64 first_byte_time(const struct socket_state *st, const struct tcp_sock *tp, u64 now,
					   u32 bytes)
{
	u64 shortest = (u64)jiffy_ns * BLOCKING_SEND_JIFFIES;
	u64 since_read, busy;

	if (!tp || bytes <= BLOCKING_SEND_BYTES || !shortest)
		return now;
	since_read = elapsed(st->last_read, now);
	if (since_read < shortest)
		return now;
	busy = (u64)(busy_so_far(tp) - st->busy) * jiffy_ns;
	if (busy < shortest)
		return now;
	return busy < since_read ? now - busy : st->last_read;
}
