/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Whether a socket serves or calls, and which of its operations are followed. */
#pragma once

#include "socket_listeners.bpf.h"
#include "socket_turns.bpf.h"

/* Below the ephemeral ports (net.ipv4.ip_local_port_range): a datagram socket here was bound on purpose. */
#define FIRST_EPHEMERAL_PORT 32768

/* A global function: the verifier works through its loop once a program. */
__noinline int is_port_of_target(u32 index, u32 port)
{
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

static __always_inline bool port_is_wanted(const struct target_ref *target, u16 port)
{
	return is_port_of_target(target->index, port);
}

/* Does the target name the port that the socket serves on? A unix socket has none. */
static __always_inline bool server_is_wanted(const struct target_ref *target, struct sock *sk)
{
	return port_is_wanted(target, is_unix(sk) ? 0 : FIELD(sk, __sk_common.skc_num));
}

/*
 * How a connection of the target is found to be HTTP/2: enum http2_follow at its beginning. `known`: it has
 * spoken that to another target.
 */
static __always_inline u8 http2_wish(const struct target_ref *target, bool known)
{
	u32 index = target->index;
	struct target_settings *settings = bpf_map_lookup_elem(&target_settings, &index);

	if (!settings || settings->http2 == TACHO_HTTP2_NEVER || !can_follow_http2())
		return HTTP2_OFF;
	return known || settings->http2 == TACHO_HTTP2_ALWAYS ? HTTP2_TRY : HTTP2_AUTO;
}

/* In place of a direction: what the first operation is remains to be seen. */
enum {
	OLDER_THAN_TACHO = TACHO_DIRECTIONS, /* there have been others */
	DATA_FIRST, /* data came before one; an answer may overtake the hook of the send */
};

/*
 * Ports on which datagrams are served, and by which socket: a connected one there is one of that server's for
 * a client (DTLS).
 */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1024);
	__type(key, struct listening_port);
	__type(value, u64);
} datagram_ports SEC(".maps");

static __always_inline void serve_port(struct sock *sk)
{
	struct listening_port key = port_of(sk);
	u64 address = (u64)sk;

	if (!FIELD(sk, __sk_common.skc_dport))
		bpf_map_update_elem(&datagram_ports, &key, &address, BPF_ANY);
}

/*
 * Would the server receive what comes to the other socket's address, if that were not there? One port is held
 * by many: an IPv6 socket does not keep clients of IPv4 from it, nor one address those of another.
 */
static __always_inline bool covers_address_of(const struct sock *server, const struct sock *sk)
{
	u32 theirs[4], ours[4];

	read_own_address(theirs, server);
	read_own_address(ours, sk);
	if (!theirs[3] && is_ipv4(theirs))
		return is_ipv4(ours);
	if (!(theirs[0] | theirs[1] | theirs[2] | theirs[3]))
		return !is_ipv4(ours) || !BPF_CORE_READ_BITFIELD_PROBED(server, __sk_common.skc_ipv6only);
	return theirs[0] == ours[0] && theirs[1] == ours[1] && theirs[2] == ours[2] && theirs[3] == ours[3];
}

/*
 * No hook tells that a datagram socket was closed, but it has lost its port then (udp_lib_unhash). The memory
 * of one is only used for others of its kind (SLAB_TYPESAFE_BY_RCU). A global function, which the verifier
 * works through once a program.
 */
__noinline u32 is_served_beside(u64 socket)
{
	const struct sock *sk = (const struct sock *)socket;
	struct listening_port key = {
	    .network = BPF_CORE_READ(sk, __sk_common.skc_net.net, ns.inum),
	    .port = BPF_CORE_READ(sk, __sk_common.skc_num),
	};
	u64 *address = bpf_map_lookup_elem(&datagram_ports, &key);
	struct sock *server = address ? (struct sock *)*address : NULL;

	return server && BPF_CORE_READ(server, __sk_common.skc_num) == key.port &&
	       !BPF_CORE_READ(server, __sk_common.skc_dport) && covers_address_of(server, sk);
}

static __always_inline bool serves_beside(struct sock *sk)
{
	return is_served_beside(as_number(sk));
}

enum { PEER_SERVED = 1, PEER_CALLED = 2 };

/* So long what had come before all sockets were visited may still be answered. */
#define IN_USE_NS 5000000000ULL

/*
 * What the peer at port `theirs` is to a UDP socket that was in use before anything of it was seen; 0: its
 * ports do not tell. A port that the kernel chose calls one that was bound on purpose. Of two that were
 * chosen, and at first only, the lower one is the server's. A global function, which the verifier works
 * through once a program.
 * @param index of its target
 */
__noinline u32 peer_by_ports(u64 socket, u32 theirs, u32 index)
{
	const struct sock *sk = (const struct sock *)socket;
	u32 own = BPF_CORE_READ(sk, __sk_common.skc_num);
	struct socket_chains *chains;

	if ((own < FIRST_EPHEMERAL_PORT) != (theirs < FIRST_EPHEMERAL_PORT))
		return own < theirs ? PEER_SERVED : PEER_CALLED;
	chains = bpf_map_lookup_elem(&socket_chains, &index);
	if (!chains || own == theirs || own >= FIRST_EPHEMERAL_PORT ||
	    (chains->adopted_at && bpf_ktime_get_ns() - chains->adopted_at > IN_USE_NS))
		return 0;
	return own < theirs ? PEER_SERVED : PEER_CALLED;
}

/*
 * Has anything ever come to a UDP socket? Of the memory that it takes for what comes it keeps a part, from
 * the first datagram on (udp_rmem_release). Who sends before that speaks first.
 */
static __always_inline bool has_heard(struct sock *sk)
{
	return FIELD(sk, sk_forward_alloc) || BPF_CORE_READ((struct udp_sock *)sk, forward_deficit);
}

/*
 * A datagram socket without a peer of its own serves some and calls others. A connected one serves if it
 * receives before it sends; but if it is older than we are, and what it sent before was not seen, its ports
 * say what it is.
 */
static __always_inline u8 datagram_role(struct sock *sk, u32 direction, bool older, u32 index)
{
	u16 peer = bpf_ntohs(FIELD(sk, __sk_common.skc_dport));
	u32 role;

	if (!peer)
		return TACHO_ROLE_DATAGRAM;
	if (direction != TACHO_SEND && direction != TACHO_RECEIVE)
		return TACHO_ROLE_NONE;
	if (serves_beside(sk))
		return TACHO_ROLE_DATAGRAM;
	role = older ? peer_by_ports(as_number(sk), peer, index) : 0;
	if (direction == TACHO_SEND)
		return role == PEER_SERVED && has_heard(sk) ? TACHO_ROLE_DATAGRAM
							    : TACHO_ROLE_DATAGRAM_CLIENT;
	return role == PEER_CALLED ? TACHO_ROLE_DATAGRAM_CLIENT : TACHO_ROLE_DATAGRAM;
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

/* Of datagram sockets: a client's, which has a name for the replies, if it has one. */
static __always_inline bool is_connected_to(const struct unix_sock *self, const struct unix_sock *other)
{
	return other && BPF_CORE_READ(other, addr) &&
	       (const struct unix_sock *)BPF_CORE_READ(other, peer) != self;
}

/* Places of sockets without a name, and of accepted ones: UNIX_HASH_MOD is the last. */
#define UNIX_PLACES 256

/*
 * Has it taken its name by itself (bind)? Then it stands in a table of the kernel by it, of abstract names or
 * of files. An accepted end has the listening socket's name and stands among those that have none. Before
 * Linux 6.0 this is not known.
 */
static __always_inline bool has_taken_name(const struct unix_sock *self)
{
	if (!bpf_core_type_exists(struct unix_table))
		return false;
	return BPF_CORE_READ(self, sk.__sk_common.skc_hash) >= UNIX_PLACES ||
	       BPF_CORE_READ(self, sk.__sk_common.skc_bind_node.pprev);
}

/*
 * The accepted end of a unix connection has the listening socket's name, and shares it; the other end has
 * none, or one of its own. Once nobody listens any more, one that is left of two named ends counts as the
 * server's, where nothing else tells. Of a pair (socketpair) neither end has a name, and nobody knows which
 * one serves.
 */
static __always_inline u8 unix_role(struct sock *sk, u32 direction, bool older)
{
	struct unix_sock *self = (struct unix_sock *)sk;
	struct unix_sock *other = (struct unix_sock *)BPF_CORE_READ(self, peer);
	bool named = BPF_CORE_READ(self, addr);
	bool other_named = other && BPF_CORE_READ(other, addr);

	if (is_datagram(sk)) {
		if (direction == TACHO_SEND && !(older && named))
			return other && !(named | other_named) ? TACHO_ROLE_OTHER
							       : TACHO_ROLE_DATAGRAM_CLIENT;
		if (older && is_connected_to(self, other))
			return TACHO_ROLE_DATAGRAM_CLIENT;
		if (!named)
			return TACHO_ROLE_OTHER;
		return direction == DATA_FIRST ? TACHO_ROLE_NONE : TACHO_ROLE_DATAGRAM_SERVER;
	}
	if (FIELD(sk, sk_type) != SOCK_STREAM && FIELD(sk, sk_type) != SOCK_SEQPACKET)
		return TACHO_ROLE_OTHER;
	if (FIELD(sk, __sk_common.skc_state) == TCP_LISTEN)
		return TACHO_ROLE_LISTENER;
	if (!named)
		return other_named ? TACHO_ROLE_CLIENT : TACHO_ROLE_OTHER;
	if (other_named && name_users(self) == 1 && (name_users(other) > 1 || has_taken_name(self)))
		return TACHO_ROLE_CLIENT;
	return TACHO_ROLE_SERVER;
}

/* The role of a socket whose birth was not seen. */
static __always_inline u8 guess_role(struct sock *sk, u32 direction, bool older, u32 index)
{
	if (is_unix(sk))
		return unix_role(sk, direction, older);
	if (is_udp(sk))
		return datagram_role(sk, direction, older, index);
	if (!is_tcp(sk) && !is_mptcp(sk))
		return TACHO_ROLE_OTHER;
	if (FIELD(sk, __sk_common.skc_state) == TCP_LISTEN)
		return TACHO_ROLE_LISTENER;
	return stream_role(sk);
}

static __always_inline bool sent_data_with_syn(struct tcp_sock *tp)
{
	return BITFIELD(tp, syn_data);
}

static __always_inline void connect_connection(struct sock *sk, struct socket_state *st)
{
	struct tcp_sock *tp = tcp_sock_of(sk);

	/* Everything sent so far is answered, and what was read so far is no answer. */
	st->write_seq = tp ? FIELD(tp, write_seq) : 0;
	if (tp)
		st->read_seq = FIELD(tp, copied_seq);
	st->peer = find_peer_slot(&st->target, sk, NULL);
}

static __always_inline void client_established(struct sock *sk, struct socket_state *st)
{
	struct tcp_sock *tp = tcp_sock_of(sk);

	connect_connection(sk, st);
	/* The hook of the send that brought the connection about has still to run. */
	if (tp && sent_data_with_syn(tp))
		st->write_seq--;
}

/* Data that came with the connection's first packet (TCP Fast Open) was announced by nothing else. */
static __always_inline void note_early_arrival(struct socket_state *st, const struct tcp_sock *tp)
{
	if (!tp || FIELD(tp, rcv_nxt) == FIELD(tp, copied_seq))
		return;
	st->arrival = st->established;
	st->last_ready = st->established;
}

/* The storage is a copy of the listening socket's. */
static __always_inline void accept_connection(struct sock *sk, struct socket_state *st)
{
	st->role = TACHO_ROLE_SERVER;
	st->established = bpf_ktime_get_ns();
	st->http2 = http2_wish(&st->target, false);
	begin_arrivals(st, tcp_sock_of(sk));
	note_early_arrival(st, tcp_sock_of(sk));
	if (!server_is_wanted(&st->target, sk))
		st->role = TACHO_ROLE_IGNORED;
	leave_node_out(sk, st);
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
	st->http2 = role == TACHO_ROLE_SERVER ? http2_wish(&st->target, st->http2 == HTTP2_TRY) : HTTP2_OFF;
	if ((role == TACHO_ROLE_SERVER || role == TACHO_ROLE_DATAGRAM_SERVER) &&
	    !server_is_wanted(&st->target, sk))
		st->role = TACHO_ROLE_IGNORED;
	leave_node_out(sk, st);
}

/* The role of a datagram socket is known: it does something for the first time. */
static __always_inline void decide_role(struct sock *sk, struct socket_state *st, u32 direction)
{
	take_role(sk, st,
		  is_udp(sk) ? datagram_role(sk, direction, st->older, st->target.index)
			     : unix_role(sk, direction, st->older));
	if (st->role == TACHO_ROLE_DATAGRAM_CLIENT)
		connect_connection(sk, st);
}
