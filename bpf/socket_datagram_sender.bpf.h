/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* The sender of what was received. */
#pragma once

#include "socket_datagram_calls.bpf.h"
#include "socket_datagram_turns.bpf.h"

/*
 * The first peer of a socket that is older than we are is known. If that was called, what came before from
 * unknown senders were answers. A global function: the verifier works through it once a program.
 * @param number of the socket
 * @param port of the peer
 * @param index of its target
 * @return whether it was called
 */
__noinline u32 was_called_before(u64 socket, u64 number, u32 port, u32 index)
{
	struct datagram_ring *ring;
	struct socket_shard *shared;
	struct datagram_slot *newest;
	u32 count;

	if (peer_by_ports(socket, port, index) != PEER_CALLED)
		return false;
	ring = bpf_map_lookup_elem(&datagram_rings, &number);
	if (!ring)
		return true;
	newest = &ring->slots[ring->newest % DATAGRAM_SLOTS];
	if (newest->source == ADDRESS_UNKNOWN)
		newest->open = 0;
	count = take_from(&ring->anonymous, ring->anonymous);
	count = take_from(&ring->open, count);
	shared = get_shared_shard(&ring->target);
	if (shared)
		add_atomic(&shared->dismissed, count);
	return true;
}

static __always_inline void prove_role(struct sock *sk, struct socket_state *st, u64 address)
{
	if (!st->unproven || address <= ADDRESS_ANY)
		return;
	st->unproven = false;
	st->has_served &=
	    !was_called_before(as_number(sk), st->number, port_of_address(address), st->target.index);
}

/* A peer has sent something without having been called since we are there. Was it before? */
static __always_inline bool has_called_before(struct sock *sk, const struct socket_state *st, u64 source)
{
	return st->older && !st->has_served && st->role == TACHO_ROLE_DATAGRAM &&
	       peer_by_ports(as_number(sk), port_of_address(source), st->target.index) == PEER_CALLED;
}

/*
 * Something goes to a peer that is not known: a reply to what came before we were there, or from a socket
 * that a server has for this client (DTLS)?
 */
static __always_inline bool has_served_before(struct sock *sk, const struct socket_state *st, u64 destination)
{
	if (FIELD(sk, __sk_common.skc_dport) && serves_beside(sk))
		return true;
	return st->older && has_heard(sk) &&
	       peer_by_ports(as_number(sk), port_of_address(destination), st->target.index) == PEER_SERVED;
}

/* Where calls to everybody (broadcast, multicast) are: whoever answers was called. */
static __always_inline struct datagram_peer *called_with_all(struct socket_state *st, u64 now)
{
	struct datagram_peer *all = st->has_called ? find_datagram_peer(peer_id(st, ADDRESS_SOLE)) : NULL;

	return all && all->role == PEER_CALLED && now - all->seen < DATAGRAM_PATIENCE_NS ? all : NULL;
}

/* Does a server's new client ask, rather than somebody answer what the server has told everybody? */
static __always_inline bool asks_by_ports(struct sock *sk, const struct socket_state *st, u64 source)
{
	return st->has_served && chose_port(sk) && port_of_address(source) >= FIRST_EPHEMERAL_PORT;
}

/* The peer that was called before the last one, and has not answered; NULL: none. */
static __always_inline struct datagram_peer *called_earlier(const struct socket_state *st)
{
	struct datagram_peer *peer =
	    st->called_before ? find_datagram_peer(peer_id(st, st->called_before)) : NULL;

	return peer && peer->role == PEER_CALLED && peer->open ? peer : NULL;
}

/*
 * Something comes from elsewhere while an answer of a peer is awaited that has never sent any: of a server
 * that answers each of its clients from a port of its own for it (TFTP, RFC 1350, 4). The call is the new
 * peer's then, and what goes there from now on is called like that one. A global function: the verifier works
 * through it once a program.
 * @param called the id of the one that was called last
 * @param id of the one that something has come from
 */
__noinline u32 is_called_elsewhere(u64 called, u64 id, u64 now)
{
	struct datagram_peer *before = find_datagram_peer(called), *peer;
	u64 seen;
	u32 slot;

	if (!before || before->role != PEER_CALLED || before->has_answered ||
	    now - before->seen > DATAGRAM_PATIENCE_NS || !take_from(&before->open, 1))
		return false;
	slot = before->first;
	seen = before->seen;
	peer = add_datagram_peer(id, PEER_CALLED, 0, seen);
	if (!peer)
		return false;
	peer->first = slot;
	peer->open = peer->run = 1;
	return true;
}

/* Does a socket only call, on a port that the kernel gave it? Then nobody knows of it but whom it has called.
 */
static __always_inline bool is_known_to_called_only(struct sock *sk, const struct socket_state *st)
{
	return st->role == TACHO_ROLE_DATAGRAM && st->has_called && !st->has_served && !chose_port(sk);
}

/*
 * The peer that was called last, if it has never sent anything: what comes from other hosts, by the port that
 * was called, answers for it. It is a network's broadcast, or an address that stands for others and is
 * replaced when something is sent there (BPF programs of a cgroup). Of several answers the first one counts.
 */
static __always_inline struct datagram_peer *called_by_others(const struct socket_state *st, u64 source,
							      u64 now)
{
	struct datagram_peer *peer = port_of_address(source) == port_of_address(st->called)
					 ? find_datagram_peer(peer_id(st, st->called))
					 : NULL;

	if (!peer || peer->role != PEER_CALLED || now - peer->seen > DATAGRAM_PATIENCE_NS ||
	    (peer->has_answered && !peer->by_others))
		return NULL;
	peer->by_others = 1;
	return peer;
}

/* May answers come from there to calls that are answered? */
static __always_inline bool has_many_answers(struct sock *sk, const struct socket_state *st,
					     const struct datagram_peer *peer)
{
	return (peer->by_others || FIELD(sk, __sk_common.skc_flags) & (1UL << SOCK_BROADCAST)) &&
	       is_known_to_called_only(sk, st);
}

/* The sender of what was just received; NULL: unknown. */
static __noinline struct datagram_peer *sender(struct sock *sk, struct socket_state *st, u64 source, u64 now)
{
	struct datagram_peer *peer;
	u64 id;

	if (source == ADDRESS_UNKNOWN) {
		peer = called_with_all(st, now);
		if (peer || !st->has_called)
			return peer;
		/* It was read before the hook of its arrival ran: an answer, where one is awaited. */
		peer = find_datagram_peer(peer_id(st, st->called));
		if (!peer || peer->role != PEER_CALLED)
			return called_earlier(st);
		if (peer->open)
			return peer;
		if (!has_many_answers(sk, st, peer))
			return called_earlier(st);
		peer->by_others = 1;
		return peer;
	}
	prove_role(sk, st, source);
	id = peer_id(st, source);
	peer = find_datagram_peer(id);
	if (peer) {
		if (may_ask_each_other(sk, source))
			note_turn(id, st->slips, now);
		return peer;
	}
	peer = st->role == TACHO_ROLE_DATAGRAM && !asks_by_ports(sk, st, source) ? called_with_all(st, now)
										 : NULL;
	if (peer)
		return peer;
	if (is_known_to_called_only(sk, st)) {
		if (!is_of_same_host(source, st->called)) {
			peer = called_by_others(st, source, now);
			if (peer)
				return peer;
		} else if (is_called_elsewhere(peer_id(st, st->called), id, now)) {
			return find_datagram_peer(id);
		}
	}
	return add_datagram_peer(id, has_called_before(sk, st, source) ? PEER_CALLED : PEER_SERVED, st->slips,
				 now);
}

/*
 * Of threads that read one socket the hooks may run in another order than they took the datagrams: each is
 * taken for the other's sender's, until both hooks have run. A reply that comes before answers somebody's.
 */
static __always_inline void note_datagram_reader(struct socket_state *st, struct datagram_ring *ring)
{
	u64 thread = bpf_get_current_pid_tgid();

	if (ring->reader == thread)
		return;
	st->slips += ring->reader != 0;
	if (ring->reader && ring->swaps < MOST_DOUBTS)
		ring->swaps++;
	ring->reader = thread;
}

static __always_inline bool dispel_swap(struct datagram_ring *ring)
{
	if (!ring->swaps)
		return false;
	ring->swaps--;
	return true;
}

/*
 * What was read before the hook of its arrival had run is nobody's. The call that reads it writes the
 * sender's address where the caller asked for it, but behind the hook. So the place is noted, and read when
 * the same thread sends or receives by this socket again. Calls without an address, recvmmsg and io_uring
 * leave the sender unknown, as does a caller that uses the place for something else meanwhile.
 */
static __always_inline void note_sender(struct datagram_ring *ring)
{
	struct pt_regs *regs = current_registers();
	u64 name = 0;

	switch (BPF_CORE_READ(regs, SYSCALL_NUMBER)) {
	case __NR_recvfrom:
		name = PT_REGS_PARM5_CORE_SYSCALL(regs);
		break;
	case __NR_recvmsg:
		/* The first member of struct msghdr. */
		bpf_probe_read_user(&name, sizeof(name), (const void *)PT_REGS_PARM2_CORE_SYSCALL(regs));
		break;
	}
	ring->sender_at = name;
}

/* The one that was noted; ADDRESS_UNKNOWN: nobody, or no more to be read. */
static __always_inline u64 noted_sender(struct datagram_ring *ring, struct sock *sk)
{
	const void *at = (const void *)ring->sender_at;
	struct datagram_address address;
	u16 family = 0;

	if (ring->reader != bpf_get_current_pid_tgid())
		return ADDRESS_UNKNOWN;
	if (bpf_probe_read_user(&family, sizeof(family), at) || family != FIELD(sk, __sk_common.skc_family) ||
	    !read_user_address(&address, at) || !address.port)
		return ADDRESS_UNKNOWN;
	return hash_address(&address);
}

/* `count` requests of a peer's that were read last. */
static __always_inline void peer_asks(struct datagram_ring *ring, struct datagram_peer *peer, u32 count,
				      u64 now)
{
	if (!fetch_add_u32(&peer->open, count))
		peer->first = ring->newest;
	peer->seen = now;
}

/* They are nobody's any more. */
static __always_inline void disown(struct socket_state *st, struct datagram_ring *ring, u64 source,
				   u32 *count)
{
	struct datagram_peer *peer =
	    source == ADDRESS_UNKNOWN ? NULL : find_datagram_peer(peer_id(st, source));

	if (source == ADDRESS_UNKNOWN)
		*count = take_from(&ring->anonymous, *count);
	else if (peer && peer->role == PEER_SERVED)
		*count = take_from(&peer->open, *count);
}

/*
 * What was read last is given to its sender, if that is known by now. @param destination of what is being
 * sent: that the place holds it says nothing, for it may have been used for that.
 */
static __noinline void name_sender(struct sock *sk, struct socket_state *st, struct socket_shard *shard,
				   u64 destination, u64 now)
{
	struct datagram_ring *ring = find_ring(st);
	struct datagram_slot *newest;
	struct datagram_peer *peer;
	struct open_calls calls;
	u64 source, told;
	u32 count;

	if (!ring || !ring->sender_at)
		return;
	newest = &ring->slots[ring->newest % DATAGRAM_SLOTS];
	told = ring->slotless ? ADDRESS_UNKNOWN : newest->source;
	count = ring->slotless ? ring->slotless : newest->open;
	source = count ? noted_sender(ring, sk) : ADDRESS_UNKNOWN;
	if (source == ADDRESS_UNKNOWN || source == destination)
		return;
	ring->is_named = true;
	if (told == source)
		return;
	peer = find_datagram_peer(peer_id(st, source));
	if (!peer)
		peer = add_datagram_peer(peer_id(st, source), PEER_SERVED, st->slips, now);
	if (!peer || (peer->role == PEER_CALLED && !peer->open))
		return;
	disown(st, ring, told, &count);
	if (!ring->slotless)
		newest->source = source;
	if (peer->role == PEER_SERVED) {
		peer_asks(ring, peer, count, now);
		return;
	}
	/* An answer to somebody who was called before the last one that was. */
	count = take_from(&ring->open, count);
	add(&shard->dismissed, count);
	if (ring->slotless)
		unbury(ring, count);
	else
		newest->open = 0;
	ring->slotless = 0;
	calls = calls_to(peer);
	peer->has_answered = true;
	call_answered(&st->target, shard, &calls, count, ring->last_read);
}
