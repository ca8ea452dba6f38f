// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/*
 * Socket operations, turns and connections of watched targets.
 *
 * Hooks at the socket layer instead of the system calls: one place catches send, sendto, sendmsg, sendmmsg, write,
 * writev, sendfile, splice and io_uring, and calls on other files cost nothing. The state of a socket lives in its
 * own storage, which a listening socket hands to the sockets it accepts, so that data can be timed in the
 * interrupt that brings it, before any process has touched the socket.
 */
#include "lib/accumulate.bpf.h"
#include "lib/loss.bpf.h"
#include "lib/targets.bpf.h"
#include "socket.h"

char LICENSE[] SEC("license") = "GPL";

#define IPPROTO_TCP 6

struct socket_state {
	u64 owner;	/* cgroup id or thread group that `target` was found by */
	u32 generation; /* of the look-up maps when it was found */
	struct target_ref target;
	u8 role;
	bool owned_by_process;
	bool counted; /* in connections_opened */
	bool overlap; /* data came while a turn was open, before any of its reply was sent */
	u32 turn_write_seq;
	u64 established;  /* accepted and not yet handled by the server; 0 afterwards */
	u64 arrival;	  /* when the oldest unread data came; 0: none known */
	u64 last_ready;	  /* when data came last */
	u64 turn_arrival; /* of the open turn */
	u64 turn_read;	  /* first read of the open turn; 0: no turn is open */
	u64 last_read;
	u64 first_reply; /* of the turn before; 0: none */
	u64 last_send;
};

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC | BPF_F_CLONE);
	__type(key, int);
	__type(value, struct socket_state);
} socket_states SEC(".maps");

/* By target index; each an array of struct socket_shard, whose shape is set before loading. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(__u32));
} socket_blocks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct socket_chains);
} socket_chains SEC(".maps");

/* Value: how many sockets listen there (SO_REUSEPORT). */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 16384);
	__type(key, struct listening_port);
	__type(value, u32);
} listening_ports SEC(".maps");

static __always_inline struct socket_shard *get_shard(const struct target_ref *target, u32 shard)
{
	u32 index = target->index;
	void *block = bpf_map_lookup_elem(&socket_blocks, &index);

	return block ? bpf_map_lookup_elem(block, &shard) : NULL;
}

/* From a hook in interrupt context, where no look-up by task tells whether the target still is the same one. */
static __always_inline struct socket_shard *get_shared_shard(const struct target_ref *target)
{
	u32 index = target->index;
	struct target_settings *settings = bpf_map_lookup_elem(&target_settings, &index);

	if (!settings || settings->epoch != target->epoch)
		return NULL;
	return get_shard(target, SHARED_SHARD);
}

static __always_inline struct listening_port port_of(struct sock *sk)
{
	struct listening_port key = {
		.network = sk->__sk_common.skc_net.net->ns.inum,
		.port = sk->__sk_common.skc_num,
	};

	return key;
}

static __always_inline bool is_tcp(struct sock *sk)
{
	u16 family = sk->__sk_common.skc_family;

	return (family == AF_INET || family == AF_INET6) && sk->sk_protocol == IPPROTO_TCP;
}

static __always_inline bool is_counted_family(struct sock *sk)
{
	u16 family = sk->__sk_common.skc_family;

	return family == AF_INET || family == AF_INET6 || family == AF_UNIX;
}

static __always_inline bool port_is_wanted(const struct target_ref *target, u16 port)
{
	u32 index = target->index;
	struct target_settings *settings = bpf_map_lookup_elem(&target_settings, &index);
	u32 count;

	if (!settings || !settings->ports_count)
		return true;
	count = settings->ports_count;
	for (u32 i = 0; i < TACHO_PORTS_PER_TARGET && i < count; i++)
		if (settings->ports[i] == port)
			return true;
	return false;
}

/* The role of a socket whose birth was not seen. */
static __always_inline u8 guess_role(struct sock *sk)
{
	struct listening_port key;

	if (!is_tcp(sk))
		return TACHO_ROLE_OTHER;
	if (sk->__sk_common.skc_state == TCP_LISTEN)
		return TACHO_ROLE_LISTENER;
	key = port_of(sk);
	return bpf_map_lookup_elem(&listening_ports, &key) ? TACHO_ROLE_SERVER : TACHO_ROLE_CLIENT;
}

static __always_inline u32 role_index(u8 role)
{
	return role == TACHO_ROLE_CLIENT;
}

static __always_inline void count_opened(struct socket_state *st)
{
	struct socket_shard *shared;

	if (st->counted || (st->role != TACHO_ROLE_SERVER && st->role != TACHO_ROLE_CLIENT))
		return;
	shared = get_shared_shard(&st->target);
	if (!shared)
		return;
	st->counted = true;
	add_atomic(&shared->connections_opened[role_index(st->role)], 1);
}

static __always_inline void finish_reply(struct socket_state *st, struct socket_shard *shard, bool atomic)
{
	u64 first = st->first_reply;

	if (!first)
		return;
	st->first_reply = 0;
	if (atomic)
		observe_atomic(&shard->reply, st->last_send - first);
	else
		observe(&shard->reply, st->last_send - first);
}

/* The connection is over, or is handed to another target. */
static __always_inline void count_closed(struct socket_state *st)
{
	struct socket_shard *shared = get_shared_shard(&st->target);

	if (shared) {
		finish_reply(st, shared, true);
		if (st->turn_read)
			add_atomic(&shared->unanswered, 1);
		if (st->counted)
			add_atomic(&shared->connections_closed[role_index(st->role)], 1);
	}
	st->first_reply = 0;
	st->turn_read = 0;
	st->counted = false;
}

/*
 * Finds the target of a socket by the task that uses it and remembers it in the socket's storage. Not on the fast
 * path: once per socket and change of the targets.
 */
static __always_inline struct socket_state *bind_socket(struct sock *sk, const struct target_rules *rules, u64 cgroup,
							 u32 tgid, u8 role)
{
	struct target_ref *found = find_target(rules, cgroup, tgid);
	struct target_ref target;
	struct socket_state *st;

	st = bpf_sk_storage_get(&socket_states, sk, NULL, 0);
	if (!found) {
		if (st && st->role != TACHO_ROLE_NONE) {
			count_closed(st);
			bpf_sk_storage_delete(&socket_states, sk);
		}
		return NULL;
	}
	target = *found;
	if (!st) {
		st = bpf_sk_storage_get(&socket_states, sk, NULL, BPF_SK_STORAGE_GET_F_CREATE);
		if (!st) {
			count_loss(TACHO_LOST_SOCKET_STATE);
			return NULL;
		}
		st->role = role != TACHO_ROLE_NONE ? role : guess_role(sk);
	} else if (st->target.index != target.index || st->target.epoch != target.epoch) {
		count_closed(st);
		if (st->role == TACHO_ROLE_IGNORED)
			st->role = guess_role(sk);
	}
	st->target = target;
	st->generation = rules->generation;
	st->owned_by_process = !cgroup_may_be_watched(rules, cgroup) || !bpf_map_lookup_elem(&cgroup_targets, &cgroup);
	st->owner = st->owned_by_process ? tgid : cgroup;
	if (st->role == TACHO_ROLE_SERVER && !port_is_wanted(&target, sk->__sk_common.skc_num))
		st->role = TACHO_ROLE_IGNORED;
	count_opened(st);
	return st;
}

/* The state of a socket that a watched task operates on; NULL for all others. */
static __always_inline struct socket_state *watched_socket(struct sock *sk, const struct target_rules *rules)
{
	u64 cgroup = bpf_get_current_cgroup_id();
	struct socket_state *st;

	if (surely_unwatched(rules, cgroup))
		return NULL;
	st = bpf_sk_storage_get(&socket_states, sk, NULL, 0);
	if (st && st->generation == rules->generation &&
	    st->owner == (st->owned_by_process ? current_tgid() : cgroup))
		return st;
	if (!is_counted_family(sk))
		return NULL;
	return bind_socket(sk, rules, cgroup, current_tgid(), TACHO_ROLE_NONE);
}

/*
 * One more operation of the target at `now`. The interval to the one before it, whoever did that, is signed: two
 * CPUs may come here in another order than they read their clocks, and only with the sign the sum telescopes.
 */
static __always_inline void account(struct socket_moments *m, struct socket_chain *chain, u64 now, u32 bytes,
				    u64 idle_limit)
{
	u64 previous = __sync_lock_test_and_set(&chain->last, now);
	s64 interval = now - previous;
	u64 square;

	add(&m->begin, 1);
	add(&m->operations, 1);
	add(&m->bytes, bytes);
	if (previous) {
		if (interval > (s64)idle_limit) {
			add(&m->idle_gaps, 1);
			add(&m->idle_gap_ns, interval);
		} else {
			add(&m->intervals, 1);
			add((u64 *)&m->interval_ns, interval);
			/* At most (4 s)^2 = 2^64: the limit keeps it in 64 bits. */
			square = interval * interval;
			if (exclusive_shards) {
				u64 low = m->square_low + square;

				m->square_high += low < square;
				m->square_low = low;
			} else {
				u64 low = __sync_fetch_and_add(&m->square_low, square) + square;

				if (low < square)
					__sync_fetch_and_add(&m->square_high, 1);
			}
		}
	}
	add(&m->end, 1);
}

/*
 * When the operation that has just ended happened. TCP has read the same clock (tcp_mstamp_refresh): for a send when it
 * handed over the last segment, for a receive when it adjusted the receive space. Taking its reading saves ours, which
 * is the dearest part of a hook (23 ns), and does not charge the way through loopback to the reply. Where nothing was
 * transmitted (Nagle, cork, a full window), or where the reading is still that of the data's arrival, it is not of this
 * operation, and we read the clock.
 */
static __always_inline u64 operation_time(const struct socket_state *st, const struct tcp_sock *tp, u32 direction)
{
	u64 time;

	if (!tp)
		return bpf_ktime_get_ns();
	time = tp->tcp_clock_cache;
	if (direction == TACHO_SEND ? tp->snd_nxt == tp->write_seq : time != st->last_ready)
		return time;
	return bpf_ktime_get_ns();
}

static __always_inline u64 elapsed(u64 from, u64 to)
{
	return (s64)(to - from) > 0 ? to - from : 0;
}

static __always_inline void turn_read(struct socket_state *st, struct socket_shard *shard,
				      const struct tcp_sock *tp, u64 now)
{
	u64 arrival = st->arrival;

	st->arrival = 0;
	st->last_read = now;
	st->overlap = false;
	if (st->turn_read)
		return;
	finish_reply(st, shard, false);
	/* Data that came together with the request before was timed when that was read. */
	if (!arrival)
		arrival = st->last_ready ? st->last_ready : now;
	st->turn_arrival = arrival;
	st->turn_read = now;
	st->turn_write_seq = tp ? tp->write_seq : 0;
	observe(&shard->queue, elapsed(arrival, now));
	if (st->established) {
		observe(&shard->accept_wait, elapsed(st->established, now));
		st->established = 0;
	}
}

static __always_inline void turn_sent(struct socket_state *st, struct socket_shard *shard, u64 now)
{
	st->last_send = now;
	if (!st->turn_read)
		return;
	st->turn_read = 0;
	st->first_reply = now;
	observe(&shard->service, elapsed(st->last_read, now));
	observe(&shard->duration, elapsed(st->turn_arrival, now));
	if (st->overlap) {
		add(&shard->overlapped_turns, 1);
		st->overlap = false;
	}
}

static __always_inline void on_operation(struct sock *sk, int bytes, u32 direction)
{
	struct target_rules *rules = get_rules();
	struct socket_chains *chains;
	struct socket_state *st;
	struct socket_shard *shard;
	struct tcp_sock *tp;
	u32 index;
	u64 now;

	if (!rules)
		return;
	st = watched_socket(sk, rules);
	if (!st || st->role == TACHO_ROLE_IGNORED)
		return;
	index = st->target.index;
	shard = get_shard(&st->target, process_shard());
	chains = bpf_map_lookup_elem(&socket_chains, &index);
	if (!shard || !chains) {
		count_loss(TACHO_LOST_STALE_TARGET);
		return;
	}
	tp = bpf_skc_to_tcp_sock(sk);
	now = operation_time(st, tp, direction);
	account(&shard->moments[direction], &chains->direction[direction], now, bytes, rules->idle_limit_ns);
	if (st->role != TACHO_ROLE_SERVER)
		return;
	if (direction == TACHO_SEND)
		turn_sent(st, shard, now);
	else
		turn_read(st, shard, tp, now);
}

SEC("tp_btf/sock_send_length")
int BPF_PROG(socket_send, struct sock *sk, int ret, int flags)
{
	if (ret > 0)
		on_operation(sk, ret, TACHO_SEND);
	return 0;
}

SEC("tp_btf/sock_recv_length")
int BPF_PROG(socket_receive, struct sock *sk, int ret, int flags)
{
	if (ret > 0 && !(flags & (MSG_PEEK | MSG_ERRQUEUE)))
		on_operation(sk, ret, TACHO_RECEIVE);
	return 0;
}

static __always_inline void on_data_ready(struct sock *sk)
{
	struct socket_state *st = bpf_sk_storage_get(&socket_states, sk, NULL, 0);
	struct tcp_sock *tp;
	u64 now;

	if (!st || st->role == TACHO_ROLE_LISTENER)
		return;
	tp = bpf_skc_to_tcp_sock(sk);
	now = tp ? tp->tcp_clock_cache : bpf_ktime_get_ns();
	if (!st->arrival)
		st->arrival = now;
	st->last_ready = now;
	/*
	 * Before the hook of our own send has run, the client may have read the reply and sent its next request:
	 * then the socket's write position has moved since the request was read. The end of the stream is no data.
	 */
	if (st->turn_read && tp && tp->write_seq == st->turn_write_seq && !(sk->sk_shutdown & RCV_SHUTDOWN))
		st->overlap = true;
}

SEC("tp_btf/sk_data_ready")
int BPF_PROG(socket_data_ready, struct sock *sk)
{
	on_data_ready(sk);
	return 0;
}

static __always_inline void count_listener(struct sock *sk, bool opened)
{
	struct listening_port key = port_of(sk);
	u32 *count = bpf_map_lookup_elem(&listening_ports, &key);
	u32 one = 1;

	if (opened) {
		if (count)
			__sync_fetch_and_add(count, 1);
		else if (bpf_map_update_elem(&listening_ports, &key, &one, BPF_ANY))
			count_loss(TACHO_LOST_MAP_FULL);
	} else if (count) {
		if (*count <= 1)
			bpf_map_delete_elem(&listening_ports, &key);
		else
			__sync_fetch_and_add(count, -1);
	}
}

/* A socket that a task has just made: it belongs to the task's target. */
static __always_inline void on_birth(struct sock *sk, u8 role)
{
	struct target_rules *rules = get_rules();
	u64 cgroup = bpf_get_current_cgroup_id();

	if (rules && !surely_unwatched(rules, cgroup))
		bind_socket(sk, rules, cgroup, current_tgid(), role);
}

static __always_inline void on_state_change(struct sock *sk, int old_state, int new_state)
{
	struct socket_state *st;

	if (!is_tcp(sk))
		return;
	if (new_state == TCP_LISTEN) {
		count_listener(sk, true);
		on_birth(sk, TACHO_ROLE_LISTENER);
		return;
	}
	if (old_state == TCP_LISTEN) {
		count_listener(sk, false);
		return;
	}
	if (new_state == TCP_SYN_SENT) {
		on_birth(sk, TACHO_ROLE_CLIENT);
		return;
	}
	st = bpf_sk_storage_get(&socket_states, sk, NULL, 0);
	if (!st)
		return;
	if (new_state == TCP_ESTABLISHED) {
		if (old_state == TCP_SYN_RECV && st->role == TACHO_ROLE_LISTENER) {
			/* The storage is a copy of the listening socket's. */
			st->role = TACHO_ROLE_SERVER;
			st->established = bpf_ktime_get_ns();
			if (!port_is_wanted(&st->target, sk->__sk_common.skc_num))
				st->role = TACHO_ROLE_IGNORED;
		}
		count_opened(st);
	} else if (new_state != TCP_CLOSE_WAIT && new_state != TCP_SYN_RECV) {
		count_closed(st);
	}
}

SEC("tp_btf/inet_sock_set_state")
int BPF_PROG(socket_state_change, struct sock *sk, int old_state, int new_state)
{
	on_state_change(sk, old_state, new_state);
	return 0;
}

/*
 * Sockets that are older than the programs or than their target. Two passes over all open files: the first
 * collects the listening ports of the machine, the second gives the sockets of watched tasks their state.
 */
SEC("iter/task_file")
int socket_list_ports(struct bpf_iter__task_file *ctx)
{
	struct file *file = ctx->file;
	struct task_struct *task = ctx->task;
	struct listening_port key;
	struct socket *socket;
	struct sock *sk;
	u32 one = 1;

	if (!file || !task)
		return 0;
	socket = bpf_sock_from_file(file);
	if (!socket || !socket->sk)
		return 0;
	sk = socket->sk;
	if (!is_tcp(sk) || sk->__sk_common.skc_state != TCP_LISTEN)
		return 0;
	key = port_of(sk);
	bpf_map_update_elem(&listening_ports, &key, &one, BPF_NOEXIST);
	return 0;
}

SEC("iter/task_file")
int socket_adopt(struct bpf_iter__task_file *ctx)
{
	struct target_rules *rules = get_rules();
	struct file *file = ctx->file;
	struct task_struct *task = ctx->task;
	struct socket_state *st;
	struct socket *socket;
	struct sock *sk;
	u64 cgroup;

	if (!file || !task || !rules)
		return 0;
	cgroup = cgroup_of(task);
	if (surely_unwatched(rules, cgroup))
		return 0;
	socket = bpf_sock_from_file(file);
	if (!socket || !socket->sk)
		return 0;
	sk = socket->sk;
	if (!is_tcp(sk))
		return 0;
	st = bpf_sk_storage_get(&socket_states, sk, NULL, 0);
	if (!st || st->generation != rules->generation)
		bind_socket(sk, rules, cgroup, task->tgid, TACHO_ROLE_NONE);
	return 0;
}
