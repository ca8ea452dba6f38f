/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Which target a socket belongs to, and in which role. */
#pragma once

#include "socket_storage.bpf.h"
#include "socket_turns.bpf.h"

/* Below the ephemeral ports (net.ipv4.ip_local_port_range): a datagram socket here was bound on purpose. */
#define FIRST_EPHEMERAL_PORT 32768

static __always_inline struct listening_port port_of(struct sock *sk)
{
	struct listening_port key = {
	    .network = BPF_CORE_READ(sk, __sk_common.skc_net.net, ns.inum),
	    .port = FIELD(sk, __sk_common.skc_num),
	};

	return key;
}

/* Sockets that listen, by address; value: where. An iterator comes upon a socket once a descriptor. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 16384);
	__type(key, u64);
	__type(value, struct listening_port);
} listening_sockets SEC(".maps");

static __always_inline void remove_listener(u64 socket)
{
	struct listening_port *found = bpf_map_lookup_elem(&listening_sockets, &socket), port;
	u32 *count;

	if (!found)
		return;
	port = *found;
	if (bpf_map_delete_elem(&listening_sockets, &socket))
		return;
	count = bpf_map_lookup_elem(&listening_ports, &port);
	if (!count)
		return;
	if (*count <= 1)
		bpf_map_delete_elem(&listening_ports, &port);
	else
		__sync_fetch_and_add(count, -1);
}

static __always_inline void add_listener(u64 socket, const struct listening_port *port)
{
	struct listening_port *known = bpf_map_lookup_elem(&listening_sockets, &socket);
	u32 *count, one = 1;

	if (known && known->network == port->network && known->port == port->port)
		return;
	/* The address of one that was closed unseen. */
	if (known)
		remove_listener(socket);
	if (bpf_map_update_elem(&listening_sockets, &socket, port, BPF_NOEXIST))
		return;
	count = bpf_map_lookup_elem(&listening_ports, port);
	if (count)
		__sync_fetch_and_add(count, 1);
	else if (bpf_map_update_elem(&listening_ports, port, &one, BPF_ANY))
		count_loss(TACHO_LOST_MAP_FULL);
}

/* A socket that listens. Without bind(2) it has no port yet when its state changes; iterators find it later.
 */
static __always_inline void note_listener(struct sock *sk)
{
	struct listening_port key = port_of(sk);

	if (key.port)
		add_listener((u64)sk, &key);
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

/* How a connection of the target is found to be HTTP/2: enum http2_follow at its beginning. */
static __always_inline u8 http2_wish(const struct target_ref *target)
{
	u32 index = target->index;
	struct target_settings *settings = bpf_map_lookup_elem(&target_settings, &index);

	if (!settings || settings->http2 == TACHO_HTTP2_NEVER || !can_follow_http2())
		return HTTP2_OFF;
	return settings->http2 == TACHO_HTTP2_ALWAYS ? HTTP2_TRY : HTTP2_AUTO;
}

/* In place of a direction: what the first operation is remains to be seen. */
enum {
	OLDER_THAN_US = TACHO_DIRECTIONS, /* there have been others */
	DATA_FIRST, /* data came before one; an answer may overtake the hook of the send */
};

/* Ports on which datagrams are served: a connected socket there is one of a server's for a client (DTLS). */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1024);
	__type(key, struct listening_port);
	__type(value, u32);
} datagram_ports SEC(".maps");

static __always_inline bool serves_beside(struct sock *sk)
{
	struct listening_port key = port_of(sk);

	return bpf_map_lookup_elem(&datagram_ports, &key);
}

/*
 * A datagram socket without a peer of its own serves some and calls others. A connected one serves if it
 * receives before it sends; but if it is older than we are, and what it sent before was not seen, its ports
 * say what it is.
 */
static __always_inline u8 datagram_role(struct sock *sk, u32 direction, bool older)
{
	u16 peer = bpf_ntohs(FIELD(sk, __sk_common.skc_dport));

	if (!peer)
		return TACHO_ROLE_DATAGRAM;
	if (direction == TACHO_SEND)
		return serves_beside(sk) ? TACHO_ROLE_DATAGRAM : TACHO_ROLE_DATAGRAM_CLIENT;
	if (direction != TACHO_RECEIVE)
		return TACHO_ROLE_NONE;
	if (older && FIELD(sk, __sk_common.skc_num) >= FIRST_EPHEMERAL_PORT && peer < FIRST_EPHEMERAL_PORT &&
	    !serves_beside(sk))
		return TACHO_ROLE_DATAGRAM_CLIENT;
	return TACHO_ROLE_DATAGRAM;
}

static __always_inline bool may_serve_datagrams(struct sock *sk, const struct socket_state *st)
{
	return st->role == TACHO_ROLE_DATAGRAM || st->role == TACHO_ROLE_DATAGRAM_SERVER ||
	       (st->role == TACHO_ROLE_NONE && is_datagram(sk));
}

/* How many sockets share the name: a listening one and the ends that were accepted from it. */
static __always_inline int name_users(const struct unix_sock *self)
{
	return BPF_CORE_READ(self, addr, refcnt.refs.counter);
}

/*
 * The accepted end of a unix connection has the listening socket's name, and shares it; the other end has
 * none, or one of its own. Once nobody listens any more, one that is left of two named ends counts as the
 * server's.
 */
static __always_inline u8 unix_role(struct sock *sk, u32 direction)
{
	struct unix_sock *self = (struct unix_sock *)sk;
	struct unix_sock *other = (struct unix_sock *)BPF_CORE_READ(self, peer);
	bool named = BPF_CORE_READ(self, addr);
	bool other_named = other && BPF_CORE_READ(other, addr);

	if (is_datagram(sk)) {
		if (direction == TACHO_SEND)
			return TACHO_ROLE_DATAGRAM_CLIENT;
		if (!named)
			return TACHO_ROLE_OTHER;
		return direction == TACHO_RECEIVE || direction == OLDER_THAN_US ? TACHO_ROLE_DATAGRAM_SERVER
										: TACHO_ROLE_NONE;
	}
	if (FIELD(sk, sk_type) != SOCK_STREAM && FIELD(sk, sk_type) != SOCK_SEQPACKET)
		return TACHO_ROLE_OTHER;
	if (FIELD(sk, __sk_common.skc_state) == TCP_LISTEN)
		return TACHO_ROLE_LISTENER;
	if (!named)
		return other_named ? TACHO_ROLE_CLIENT : TACHO_ROLE_OTHER;
	if (other_named && name_users(self) == 1 && name_users(other) > 1)
		return TACHO_ROLE_CLIENT;
	return TACHO_ROLE_SERVER;
}

/* The role of a socket whose birth was not seen. */
static __always_inline u8 guess_role(struct sock *sk, u32 direction)
{
	struct listening_port key;

	if (is_unix(sk))
		return unix_role(sk, direction);
	if (is_udp(sk))
		return datagram_role(sk, direction, direction == OLDER_THAN_US);
	if (!is_tcp(sk) && !is_mptcp(sk))
		return TACHO_ROLE_OTHER;
	if (FIELD(sk, __sk_common.skc_state) == TCP_LISTEN)
		return TACHO_ROLE_LISTENER;
	key = port_of(sk);
	return bpf_map_lookup_elem(&listening_ports, &key) ? TACHO_ROLE_SERVER : TACHO_ROLE_CLIENT;
}

static __always_inline void connect_connection(struct sock *sk, struct socket_state *st)
{
	struct tcp_sock *tp = tcp_sock_of(sk);

	/* Everything sent so far is answered. */
	st->write_seq = tp ? FIELD(tp, write_seq) : 0;
	st->peer = find_peer_slot(&st->target, sk, NULL);
}

/* The storage is a copy of the listening socket's. */
static __always_inline void accept_connection(struct sock *sk, struct socket_state *st)
{
	st->role = TACHO_ROLE_SERVER;
	st->established = bpf_ktime_get_ns();
	st->http2 = http2_wish(&st->target);
	begin_arrivals(st, tcp_sock_of(sk));
	if (!port_is_wanted(&st->target, FIELD(sk, __sk_common.skc_num)))
		st->role = TACHO_ROLE_IGNORED;
}

/*
 * A connection's socket begins as a copy of the listening one. If it still is one, its state changes were
 * kept from us, or it does something before it is established (TCP Fast Open).
 */
static __always_inline bool repair_role(struct sock *sk, struct socket_state *st)
{
	if (FIELD(sk, __sk_common.skc_state) == TCP_LISTEN || is_unix(sk) || is_subflow(sk))
		return false;
	accept_connection(sk, st);
	count_opened(st);
	return true;
}

static __always_inline void take_role(struct sock *sk, struct socket_state *st, u8 role)
{
	st->role = role;
	st->close_unseen = is_unix(sk);
	st->http2 = role == TACHO_ROLE_SERVER ? http2_wish(&st->target) : HTTP2_OFF;
	if (role == TACHO_ROLE_SERVER && !is_unix(sk) &&
	    !port_is_wanted(&st->target, FIELD(sk, __sk_common.skc_num)))
		st->role = TACHO_ROLE_IGNORED;
}

/* The role of a datagram socket is known: it does something for the first time. */
static __always_inline void decide_role(struct sock *sk, struct socket_state *st, u32 direction)
{
	take_role(sk, st,
		  is_udp(sk) ? datagram_role(sk, direction, st->datagrams & DATAGRAM_OLDER)
			     : unix_role(sk, direction));
	if (st->role == TACHO_ROLE_DATAGRAM_CLIENT)
		connect_connection(sk, st);
}

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
	count_closed(st, sk);
	st->counted = counted;
}

/* So often a socket is handed on; then several targets share it, and the one that it is with keeps it. */
#define MAX_HANDOVERS 3

static __always_inline bool stays_with_target(const struct socket_state *st, const struct target_ref *user)
{
	return (st->handovers >= MAX_HANDOVERS || is_kernel_thread()) && st->role != TACHO_ROLE_NONE &&
	       (st->target.index != user->index || st->target.epoch != user->epoch) && !is_stale(&st->target);
}

static __always_inline void change_target(struct socket_state *st, struct sock *sk)
{
	count_closed(st, sk);
	if (st->handovers < MAX_HANDOVERS && !is_stale(&st->target))
		st->handovers++;
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
		if (is_kernel_socket(sk) || (direction == OLDER_THAN_US && is_unconnected(sk)))
			return NULL;
		st = make_state(sk, NULL);
		if (!st)
			return NULL;
		/* Made by another hook at the same time, it has a role or gets the same one here. */
		fresh = st->role == TACHO_ROLE_NONE;
	}
	if (fresh || st->target.index != target.index || st->target.epoch != target.epoch) {
		if (fresh) {
			st->role = role != TACHO_ROLE_NONE ? role : guess_role(sk, direction);
			begin_arrivals(st, tcp_sock_of(sk));
		} else {
			change_target(st, sk);
		}
		if (st->role == TACHO_ROLE_IGNORED)
			st->role = guess_role(sk, direction);
		if (direction == OLDER_THAN_US && is_datagram(sk))
			st->datagrams |= DATAGRAM_OLDER;
		st->target = target;
		take_role(sk, st, st->role);
		if (st->role == TACHO_ROLE_CLIENT || st->role == TACHO_ROLE_DATAGRAM_CLIENT)
			connect_connection(sk, st);
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
 * The accepted ends of unix connections to watched servers, until their first data comes. By address of the
 * socket, which says nothing once it is freed: the name, shared with the listening socket, must agree.
 */
struct unix_connection {
	struct socket_state state;
	u64 name;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 8192);
	__type(key, u64);
	__type(value, struct unix_connection);
} unix_connections SEC(".maps");

/* What an entry begins as: too large for the stack. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct unix_connection);
} no_unix_connection SEC(".maps");

static __always_inline u64 unix_name(struct sock *sk)
{
	return (u64)BPF_CORE_READ((struct unix_sock *)sk, addr);
}

/* A client has connected to a listening unix socket: the new end waits at the end of its queue. */
static __always_inline void expect_unix_connection(struct sock *listener, const struct socket_state *from)
{
	struct unix_connection *connection;
	u32 zero = 0;
	u64 key;

	if (!FIELD(listener, sk_receive_queue.qlen))
		return;
	key = (u64)BPF_CORE_READ(listener, sk_receive_queue.prev, sk);
	connection = bpf_map_lookup_elem(&no_unix_connection, &zero);
	if (connection)
		bpf_map_update_elem(&unix_connections, &key, connection, BPF_ANY);
	connection = bpf_map_lookup_elem(&unix_connections, &key);
	if (!connection) {
		count_loss(TACHO_LOST_MAP_FULL);
		return;
	}
	connection->state.owner = from->owner;
	connection->state.generation = from->generation;
	connection->state.owned_by_process = from->owned_by_process;
	connection->state.target = from->target;
	connection->state.role = TACHO_ROLE_SERVER;
	connection->state.close_unseen = true;
	connection->state.http2 = http2_wish(&from->target);
	connection->state.established = bpf_ktime_get_ns();
	connection->name = unix_name(listener);
}

/* What was expected of the accepted end of a unix connection becomes its state. */
static __always_inline struct socket_state *take_unix_connection(struct sock *sk)
{
	struct unix_connection *connection;
	struct socket_state *st;
	u64 key = (u64)sk;
	u64 name = unix_name(sk);

	if (!name)
		return NULL;
	connection = bpf_map_lookup_elem(&unix_connections, &key);
	if (!connection)
		return NULL;
	st = connection->name == name ? make_state(sk, &connection->state) : NULL;
	bpf_map_delete_elem(&unix_connections, &key);
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
