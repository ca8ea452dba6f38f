/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Does a thread wait for more from this client, and for nothing else? It is blocked in a receive, or in a
 * poll(2) of this one socket. A server that does so owes no reply, unless other threads make its replies.
 *
 * Event loops cannot be judged: epoll is in the socket's wait queue all the time, whether a thread waits or
 * not, and a thread that waits there waits for many things.
 */
#pragma once

#include "socket_state.bpf.h"

/* epoll, a poll or receive, and some to spare: descriptors that were passed on have epoll entries, too. */
#define WAITERS_LOOKED_AT 4

static __always_inline bool waits_for_it_alone(const struct wait_queue_entry *entry, const void *who,
					       u64 queue)
{
	struct poll_table_entry *poll =
	    (void *)((u64)entry - bpf_core_field_offset(struct poll_table_entry, wait));
	struct poll_wqueues *polled = (void *)who;

	if ((u64)BPF_CORE_READ(poll, wait_address) != queue)
		return true;
	return BPF_CORE_READ(poll, key) & POLLIN && BPF_CORE_READ(polled, inline_index) == 1 &&
	       !BPF_CORE_READ(polled, table);
}

/*
 * A global function, of an address: the verifier works through its loop once a program. The queue is read
 * without its lock: what changes meanwhile may give a wrong answer, which is why it is asked twice
 * (socket_sweep.bpf.h).
 */
__noinline u32 has_waiter(u64 address)
{
	struct socket_wq *wq = (void *)address;
	struct list_head *node, *end;

	if (!wq)
		return false;
	end = &wq->wait.head;
	node = BPF_CORE_READ(end, next);
	for (u32 i = 0; i < WAITERS_LOOKED_AT && node && node != end; i++) {
		struct wait_queue_entry *entry =
		    (void *)((u64)node - bpf_core_field_offset(struct wait_queue_entry, entry));
		void *who = BPF_CORE_READ(entry, private);

		if (who && waits_for_it_alone(entry, who, (u64)&wq->wait))
			return true;
		node = BPF_CORE_READ(node, next);
	}
	return false;
}

static __always_inline bool is_waited_for(struct sock *sk)
{
	return has_waiter((u64)BPF_CORE_READ(sk, sk_wq));
}
