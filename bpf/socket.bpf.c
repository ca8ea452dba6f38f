// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/*
 * Socket operations, turns, calls and connections of watched targets.
 *
 * Hooks at the socket layer instead of the system calls: one place catches send, sendto, sendmsg, sendmmsg,
 * write, writev, sendfile, splice and io_uring, and calls on other files cost nothing. The state of a socket
 * lives in its own storage, which a listening socket hands to the sockets it accepts, so that data can be
 * timed in the interrupt that brings it, before any process has touched the socket.
 */
#include "lib/own_time.bpf.h"
#include "socket_adopt.bpf.h"
#include "socket_again.bpf.h"
#include "socket_binding.bpf.h"
#include "socket_calls.bpf.h"
#include "socket_datagram.bpf.h"
#include "socket_first_out.bpf.h"
#include "socket_moments.bpf.h"
#include "socket_node_turns.bpf.h"
#include "socket_sampling.bpf.h"
#include "socket_sweep.bpf.h"
#include "socket_turns.bpf.h"
#include "socket_unseen.bpf.h"

char LICENSE[] SEC("license") = "GPL";

/* The state of a socket that a watched task operates on; NULL for all others. */
static __always_inline struct socket_state *watched_socket(struct sock *sk, const struct target_rules *rules,
							   u32 direction)
{
	u64 cgroup = current_cgroup();
	struct socket_state *st;

	if (is_surely_unwatched_here(rules, cgroup))
		return NULL;
	st = state_of(sk);
	/* Who only looks does not take it over. */
	if (!st || st->generation != rules->generation ||
	    (direction != DATA_FIRST && st->owner != (st->owned_by_process ? current_tgid() : cgroup)))
		st = bind_by_task(sk, rules, cgroup, current_tgid(), TACHO_ROLE_NONE, direction);
	if (st && st->role <= TACHO_ROLE_LISTENER) {
		if (st->role == TACHO_ROLE_NONE)
			decide_role(sk, st, direction);
		else
			repair_role(sk, st);
	}
	return st;
}

/*
 * When the operation that has just ended happened. TCP has read the same clock (tcp_mstamp_refresh): for a
 * send when it handed over the last segment, for a receive when it adjusted the receive space. Taking its
 * reading saves ours, which is the dearest part of a hook (23 ns), and does not charge the way through
 * loopback to the reply. Where nothing was transmitted (Nagle, cork, a full window), or where the reading is
 * still that of the data's arrival, it is not of this operation, and we read the clock. Since Linux 6.19 a
 * receive reads no clock.
 */
/* Set before loading: a truth value. */
const volatile __u32 receives_tell_time = 0;

static __always_inline u64 operation_time(const struct socket_state *st, const struct tcp_sock *tp,
					  u32 direction)
{
	u64 time;

	if (!tp)
		return bpf_ktime_get_ns();
	time = FIELD(tp, tcp_clock_cache);
	if (direction == TACHO_SEND ? FIELD(tp, snd_nxt) == FIELD(tp, write_seq)
				    : receives_tell_time && time != st->last_ready)
		return time;
	return bpf_ktime_get_ns();
}

/* @param peeked what was received is still there, and no operation yet */
static __always_inline void on_operation(struct sock *sk, int bytes, u32 direction, bool peeked)
{
	struct target_rules *rules = get_rules();
	struct socket_chains *chains;
	struct socket_state *st;
	struct socket_shard *shard;
	struct tcp_sock *tp;
	u64 now, seed, begun;
	u32 index;

	if (!rules)
		return;
	st = watched_socket(sk, rules, peeked ? DATA_FIRST : direction);
	if (!st || st->role == TACHO_ROLE_IGNORED)
		return;
	if (peeked) {
		if (st->role == TACHO_ROLE_DATAGRAM)
			datagram_peeked(sk, st);
		return;
	}
	index = st->target.index;
	shard = get_shard(&st->target, process_shard());
	chains = bpf_map_lookup_elem(&socket_chains, &index);
	if (!shard || !chains) {
		count_loss(TACHO_LOST_STALE_TARGET);
		return;
	}
	if (is_left_out(st)) {
		node_operation(st, shard, sk, bytes, direction);
		return;
	}
	if ((rules->shed || st->shed) && is_put_aside(st, sk, rules, chains, shard, direction, bytes))
		return;
	seed = chains->direction[direction].last;
	begun = begin_own_time(seed);
	tp = tcp_sock_of(sk);
	now = operation_time(st, tp, direction);
	if (st->shed >= TACHO_SHED_INTERVALS)
		account_without_interval(&shard->moments[direction], &chains->direction[direction], now,
					 bytes);
	else
		account(&shard->moments[direction], &chains->direction[direction], now, bytes,
			rules->idle_limit_ns);
	if (direction == TACHO_RECEIVE && was_overtaken(st, tp, bytes))
		return;
	switch (st->role) {
	case TACHO_ROLE_SERVER:
		if (st->http2 && http2_operation(st, sk, shard, now, bytes, direction)) {
			drop_turn(st, shard);
			break;
		}
		if (direction == TACHO_SEND) {
			open_unseen_turn(st, shard, sk, tp, now, bytes);
			server_sent(st, shard, sk, tp, now, bytes);
		} else
			server_received(st, shard, sk, tp, now, bytes);
		break;
	case TACHO_ROLE_CLIENT:
		if (direction == TACHO_SEND) {
			end_unseen_call(st, sk, tp, bytes);
			client_sent(st, sk, tp, now, bytes);
		} else
			client_received(st, shard, sk, tp, now, bytes);
		break;
	case TACHO_ROLE_DATAGRAM:
	case TACHO_ROLE_DATAGRAM_SERVER:
	case TACHO_ROLE_DATAGRAM_CLIENT:
		if (direction == TACHO_SEND)
			datagram_sent(sk, st, shard, bytes, now, chains->direction[TACHO_RECEIVE].last);
		else
			datagram_received(sk, st, shard, bytes, now);
		break;
	}
	end_own_time(&shard->own_ns, seed, begun);
}

/* A datagram may be empty; at the end of a stream, or when the socket was shut down, nothing was received. */
static __always_inline bool is_empty_datagram(struct sock *sk, long ret, u32 direction)
{
	return !ret && is_datagram(sk) &&
	       (direction == TACHO_SEND || !(FIELD(sk, sk_shutdown) & RCV_SHUTDOWN));
}

static __always_inline bool is_operation(struct sock *sk, long ret, u32 direction)
{
	return ret > 0 || is_empty_datagram(sk, ret, direction);
}

static __always_inline void on_failed_datagram(struct sock *sk)
{
	struct socket_state *st = is_unwatched_task() ? NULL : state_of(sk);

	if (st)
		end_batch(st);
}

/* An operation that has ended; what was only looked at is none. */
static __always_inline void on_socket_returned(struct sock *sk, long ret, int flags, u32 direction)
{
	bool peeked = flags & MSG_PEEK;

	if (!sk)
		return;
	/* One call: it is inlined. */
	if (peeked ? ret > 0 && is_udp(sk) : !(flags & MSG_ERRQUEUE) && is_operation(sk, ret, direction))
		on_operation(sk, ret, direction, peeked);
	else if (ret < 0 && direction == TACHO_SEND && is_datagram(sk))
		on_failed_datagram(sk);
}

REPEATED_TRACEPOINT(sock_send_length, socket_send, EVENT_SEND,
		    is_unwatched_task() || !is_operation(sk, ret, TACHO_SEND),
		    on_socket_returned(sk, ret, 0, TACHO_SEND), struct sock *sk, int ret)
REPEATED_TRACEPOINT(sock_recv_length, socket_receive, EVENT_RECEIVE,
		    is_unwatched_task() || !is_operation(sk, ret, TACHO_RECEIVE),
		    on_socket_returned(sk, ret, flags, TACHO_RECEIVE), struct sock *sk, int ret, int flags)

static __always_inline void on_data_ready(struct sock *sk)
{
	struct socket_state *st;
	u64 now, seed, begun;
	struct socket_shard *shard;
	struct tcp_sock *tp;

	if (is_unix(sk))
		note_unix_out(sk);
	st = state_of(sk);
	if (!st)
		st = bind_unseen(sk);
	if (!st)
		return;
	if (st->role == TACHO_ROLE_LISTENER && !repair_role(sk, st)) {
		if (is_unix(sk))
			expect_unix_connection(sk, st);
		return;
	}
	if (st->aside || (is_unix(sk) && !FIELD(sk, sk_receive_queue.qlen)))
		return; /* The reader was faster than this hook. */
	seed = st->last_ready;
	begun = begin_own_time(seed);
	tp = tcp_sock_of(sk);
	now = tp ? FIELD(tp, tcp_clock_cache) : bpf_ktime_get_ns();
	data_arrived(st, sk, tp, now);
	if (may_serve_datagrams(sk, st))
		datagram_arrived(sk, st, now);
	/*
	 * Before the hook of our own send has run, the client may have read the reply and sent its next
	 * request: then the socket's write position has moved since the request was read. The end of the
	 * stream is no data.
	 */
	if (is_open(st) && tp && FIELD(tp, write_seq) == st->write_seq &&
	    !(FIELD(sk, sk_shutdown) & RCV_SHUTDOWN))
		st->overlap = true;
	else if (st->role == TACHO_ROLE_CLIENT && answers_earlier_call(st, tp))
		st->overlap = true;
	if (!is_timed_event(seed))
		return;
	shard = get_shard(&st->target, SHARED_SHARD);
	if (shard)
		end_shared_own_time(&shard->own_ns, seed, begun);
}

REPEATED_TRACEPOINT(sk_data_ready, socket_data_ready, EVENT_DATA_READY, !noticeable_state(sk),
		    on_data_ready(sk), struct sock *sk)

#include "socket_hooks.bpf.h"

/* Of connections that are made while some target leaves clients out. */
static __always_inline void follow_client(struct sock *sk, int old_state, int new_state)
{
	struct target_rules *rules = get_rules();

	if (!rules || !rules->client_rules)
		return;
	if (new_state == TCP_SYN_SENT || new_state == TCP_CLOSE ||
	    (new_state == TCP_ESTABLISHED && old_state == TCP_SYN_SENT))
		follow_node_client(as_number(sk), new_state);
}

/*
 * Is it a connection from a checkpoint (CRIU)? Whichever end that was, it is made like a client's. Its role
 * is found with its first operation, as that of older ones: by then its listening socket is there again, too.
 */
static __always_inline bool is_restored(struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sock_of(sk);

	return tp && BITFIELD(tp, repair);
}

/* A second run for the same event changes nothing more. */
static __always_inline void on_state_change(struct sock *sk, int old_state, int new_state)
{
	struct socket_state *st;
	bool mptcp = is_mptcp(sk);

	if (!mptcp && !is_tcp(sk))
		return;
	/* The port of an MPTCP socket is listened on by its first subflow, too. */
	if (new_state == TCP_LISTEN) {
		if (!mptcp)
			note_listener(sk);
		bind_anew(sk, TACHO_ROLE_LISTENER);
		return;
	}
	if (old_state == TCP_LISTEN) {
		if (new_state == TCP_CLOSE)
			remove_listener((u64)sk);
		else if (new_state == TCP_SYN_RECV)
			inherit_state(sk);
		/* A connection's socket begins as a copy of the listening one: TCP's goes to SYN_RECV. */
		if (new_state != TCP_ESTABLISHED)
			return;
	}
	if (is_subflow(sk))
		return;
	follow_client(sk, old_state, new_state);
	if (new_state == TCP_SYN_SENT) {
		if (!is_restored(sk))
			bind_anew(sk, TACHO_ROLE_CLIENT);
		return;
	}
	st = state_of(sk);
	if (!st && new_state == TCP_ESTABLISHED && old_state != TCP_SYN_SENT)
		st = bind_accepted(sk);
	if (!st)
		return;
	if (new_state == TCP_ESTABLISHED) {
		if (old_state != TCP_SYN_SENT && st->role == TACHO_ROLE_LISTENER)
			accept_connection(sk, st);
		else if (st->role == TACHO_ROLE_CLIENT)
			client_established(sk, st);
		count_opened(st);
	} else if (new_state != TCP_CLOSE_WAIT && new_state != TCP_SYN_RECV) {
		end_last_call(st, sk);
		connection_ended(st, sk, old_state);
	}
}

ON_TRACEPOINT(inet_sock_set_state, socket_state_change, on_state_change(sk, old_state, new_state),
	      struct sock *sk, int old_state, int new_state)

/*
 * The second program behind it (socket_again.bpf.h). No note is needed, nor would there be a place for one:
 * most sockets have no state yet.
 */
SEC("tp_btf/inet_sock_set_state")
int BPF_PROG(socket_state_change_again, struct sock *sk, int old_state, int new_state)
{
	on_state_change(sk, old_state, new_state);
	return 0;
}
