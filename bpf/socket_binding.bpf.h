/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* The target that a socket belongs to. */
#pragma once

#include "socket_roles.bpf.h"
#include "socket_unix.bpf.h"

/* Until one side has closed it; before and afterwards it is no open connection. */
static __always_inline bool is_established(struct sock *sk)
{
	u8 state = FIELD(sk, __sk_common.skc_state);

	return state == TCP_ESTABLISHED || state == TCP_CLOSE_WAIT || state == TCP_SYN_RECV;
}

/* A stream socket that is neither connected nor listening: what it will be is seen when it becomes that. */
static __always_inline bool is_unconnected(struct sock *sk)
{
	return (is_tcp(sk) || is_mptcp(sk)) && FIELD(sk, __sk_common.skc_state) == TCP_CLOSE;
}

/* Sockets of the kernel's own (NFS, ksmbd, tunnels) have no file. */
static __always_inline bool is_kernel_socket(struct sock *sk)
{
	struct socket *socket = BPF_CORE_READ(sk, sk_socket);

	return socket && !BPF_CORE_READ(socket, file);
}

static __always_inline bool is_kernel_thread(void)
{
	return FIELD(current_task(), flags) & PF_KTHREAD;
}

/*
 * Someone who is not watched uses the socket. The open turn is over; the connection stays where it was
 * opened, until it ends: it may be used from both sides alternately.
 */
static __always_inline void leave_target(struct socket_state *st, struct sock *sk)
{
	bool counted = st->counted;

	if (is_kernel_thread())
		return;
	st->counted = false;
	count_closed(st, sk, END_IS_LEAVING);
	st->counted = counted;
}

/* So often a socket is handed on; then several targets share it, and the one that it is with keeps it. */
#define MAX_HANDOVERS 3

static __always_inline bool stays_with_target(const struct socket_state *st, const struct target_ref *user)
{
	return (st->handovers >= MAX_HANDOVERS || is_kernel_thread()) && st->role != TACHO_ROLE_NONE &&
	       (st->target.index != user->index || st->target.epoch != user->epoch) && !is_stale(&st->target);
}

/* Whether the position of the arrival is known, and that it has not been read yet. */
static __always_inline bool knows_arrival(const struct socket_state *st, const struct tcp_sock *tp)
{
	return tp && st->role == TACHO_ROLE_SERVER && st->arrival && st->arrival_seq == FIELD(tp, copied_seq);
}

/*
 * What has just been read is the first that is seen of a connection, which somebody else has accepted: it was
 * there already. TCP knows since when, in jiffies. Up to one of them later than that, so that nothing waited
 * longer than it did.
 */
static __always_inline void note_unseen_arrival(struct socket_state *st, const struct tcp_sock *tp)
{
	u32 ago;

	if (!tp || !jiffy_ns)
		return;
	ago = (u32)bpf_jiffies64() - FIELD((const struct inet_connection_sock *)tp, icsk_ack.lrcvtime);
	if (ago < 2)
		return;
	st->last_ready = bpf_ktime_get_ns() - (u64)(ago - 1) * jiffy_ns;
	st->arrival = st->last_ready;
}

/*
 * Whoever takes a connection over with a request that has been read answers it: then it counts, and is not in
 * flight before. Threads of the target before are none of its own.
 */
static __always_inline void take_turn_along(struct socket_state *st)
{
	st->ended = st->turn - 1;
	st->counted_late = true;
	st->reader = 0;
}

/*
 * It goes to another target, or begins anew with the same one, or after nobody was watched: what was open may
 * have ended unseen then, and what had come may have been read.
 */
static __always_inline void change_target(struct socket_state *st, struct sock *sk, bool same)
{
	struct tcp_sock *tp = tcp_sock_of(sk);

	if (count_closed(st, sk, END_IS_LEAVING) && !same && !is_out_of_date(st))
		take_turn_along(st);
	if (tp)
		st->read_seq = FIELD(tp, copied_seq);
	if (same)
		st->call_open = false;
	else if (st->handovers < MAX_HANDOVERS && !is_stale(&st->target))
		st->handovers++;
	if (same || is_out_of_date(st)) {
		st->left = false;
		if (!knows_arrival(st, tp))
			begin_arrivals(st, tp);
	}
}

/* A connection may have begun long ago, unseen: its next request may be the first that is seen of HTTP/2. */
static __always_inline void begin_http2_unseen(struct socket_state *st)
{
	if (st->http2 == HTTP2_AUTO)
		st->http2 = HTTP2_OLDER;
}

/*
 * The target may name other ports than when the socket was found. How HTTP/2 is found is for connections that
 * begin.
 */
static __noinline void follow_settings(struct sock *sk, struct socket_state *st)
{
	u8 serves = is_unix(sk) && is_datagram(sk) ? TACHO_ROLE_DATAGRAM_SERVER : TACHO_ROLE_SERVER;

	if (is_udp(sk)) {
		st->has_served = false; /* It asks for its port anew. */
		if (st->role == TACHO_ROLE_IGNORED)
			st->role = TACHO_ROLE_NONE;
		return;
	}
	if (st->role != serves && st->role != TACHO_ROLE_IGNORED)
		return;
	if (!server_is_wanted(&st->target, sk)) {
		if (st->role != TACHO_ROLE_IGNORED)
			count_closed(st, sk, END_IS_LEAVING);
		st->role = TACHO_ROLE_IGNORED;
		return;
	}
	if (st->role == TACHO_ROLE_IGNORED) {
		begin_arrivals(st, tcp_sock_of(sk));
		begin_http2_unseen(st);
	}
	st->role = serves;
}

/*
 * Has a datagram socket been in use before we saw anything of it? As long as those of its target have not all
 * been visited (socket_adopt.bpf.h), it may be one that was not yet; but who sends without ever having heard
 * anything speaks first.
 */
static __always_inline bool is_older(struct sock *sk, const struct target_ref *target, u32 direction)
{
	u32 index = target->index;
	struct socket_chains *chains;

	if (!is_datagram(sk))
		return false;
	if (direction == OLDER_THAN_TACHO)
		return true;
	chains = bpf_map_lookup_elem(&socket_chains, &index);
	if (!chains || chains->adopted_at)
		return false;
	return direction != TACHO_SEND || !is_udp(sk) || has_heard(sk);
}

/*
 * Finds the target of a socket by its user and remembers it in the socket's storage. Not on the fast path:
 * once per socket and change of the targets.
 */
static __always_inline struct socket_state *bind_by_task(struct sock *sk, const struct target_rules *rules,
							 u64 cgroup, u32 tgid, u8 role, u32 direction)
{
	struct target_ref *found = find_target(rules, cgroup, tgid);
	u16 family = FIELD(sk, __sk_common.skc_family);
	struct socket_state *st = state_of(sk);
	struct target_ref target;
	bool fresh = !st;
	bool same, unseen;

	if (!found) {
		if (st)
			leave_target(st, sk);
		return NULL;
	}
	if (family != AF_INET && family != AF_INET6 && family != AF_UNIX)
		return NULL;
	target = *found;
	if (st && stays_with_target(st, &target))
		return st;
	if (!st) {
		if (is_kernel_socket(sk) || (direction == OLDER_THAN_TACHO && is_unconnected(sk)))
			return NULL;
		st = make_state(sk, NULL);
		if (!st)
			return NULL;
		/* Made by another hook at the same time, it has a role or gets the same one here. */
		fresh = st->role == TACHO_ROLE_NONE;
	}
	same = st->target.index == target.index && st->target.epoch == target.epoch;
	unseen = fresh ? role == TACHO_ROLE_NONE : is_out_of_date(st);
	if (fresh || !same || unseen) {
		if ((fresh || direction == OLDER_THAN_TACHO) && is_older(sk, &target, direction))
			st->older = st->unproven = true;
		if (fresh) {
			st->role = role != TACHO_ROLE_NONE
				       ? role
				       : guess_role(sk, direction, st->older, target.index);
			begin_arrivals(st, tcp_sock_of(sk));
			if (direction == TACHO_RECEIVE && st->role == TACHO_ROLE_SERVER)
				note_unseen_arrival(st, tcp_sock_of(sk));
		} else {
			change_target(st, sk, same);
		}
		if (st->role >= TACHO_ROLE_IGNORED)
			st->role = guess_role(sk, direction, st->older, target.index);
		st->target = target;
		take_role(sk, st, st->role);
		if (unseen)
			begin_http2_unseen(st);
		if (st->role == TACHO_ROLE_CLIENT || st->role == TACHO_ROLE_DATAGRAM_CLIENT) {
			connect_connection(sk, st);
			/* What is being sent is a call of this user's. */
			if (direction == TACHO_SEND)
				st->write_seq--;
		}
	} else {
		follow_settings(sk, st);
	}
	st->generation = rules->generation;
	st->owned_by_process =
	    !cgroup_may_be_watched(rules, cgroup) || !bpf_map_lookup_elem(&cgroup_targets, &cgroup);
	st->owner = st->owned_by_process ? tgid : cgroup;
	if (is_established(sk))
		count_opened(st);
	return st;
}

/* A socket that the current task has just made: it belongs to the task's target. */
static __always_inline void bind_new(struct sock *sk, u8 role)
{
	struct target_rules *rules = get_rules();
	u64 cgroup = current_cgroup();

	if (rules && !is_surely_unwatched_here(rules, cgroup))
		bind_by_task(sk, rules, cgroup, current_tgid(), role, DATA_FIRST);
}

/* A socket that was connected, or has listened, may do either again: what was known of it holds no more. */
static __always_inline void bind_anew(struct sock *sk, u8 role)
{
	struct socket_state *st = state_of(sk);

	if (st && (st->role != role || role == TACHO_ROLE_CLIENT))
		drop_state(sk);
	bind_new(sk, role);
}

/*
 * A connection was made to a listening socket that is older than tacho and was not found, for want of its
 * process in tacho's PID namespace. The new socket is in the cgroup of the listening one.
 */
static __always_inline struct socket_state *bind_accepted(struct sock *sk)
{
	struct target_rules *rules = get_rules();
	struct socket_state *st;
	u64 cgroup = cgroup_of_socket(sk);

	if (!rules || !cgroup_may_be_watched(rules, cgroup))
		return NULL;
	st = bind_by_task(sk, rules, cgroup, 0, TACHO_ROLE_SERVER, DATA_FIRST);
	if (st)
		accept_connection(sk, st);
	return st;
}

/*
 * Data or a connection came to a socket that no watched task has touched yet, of a kind whose birth no hook
 * tells. Datagram sockets and listening unix sockets belong to whoever made them.
 */
static __always_inline struct socket_state *bind_unseen(struct sock *sk)
{
	struct target_rules *rules;
	u64 cgroup;
	u32 tgid = 0;

	if (is_unix(sk)) {
		if (FIELD(sk, __sk_common.skc_state) != TCP_LISTEN && !is_datagram(sk))
			return take_unix_connection(sk);
	} else if (!is_udp(sk)) {
		return NULL;
	}
	rules = get_rules();
	if (!rules)
		return NULL;
	cgroup = cgroup_of_socket(sk);
	/* Of a listening unix socket: the process that listened. */
	if (rules->process_rules && is_unix(sk) && !is_datagram(sk))
		tgid = BPF_CORE_READ(sk, sk_peer_pid, numbers[0].nr);
	if (surely_unwatched(rules, cgroup, tgid))
		return NULL;
	return bind_by_task(sk, rules, cgroup, tgid, TACHO_ROLE_NONE, DATA_FIRST);
}
