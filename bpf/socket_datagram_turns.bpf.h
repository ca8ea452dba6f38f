/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Nodes that ask each other on one pair of ports (gossip, consensus, SIP): who has ever spoken first tells
 * nothing then, but after a silence in which nothing was open who speaks begins an exchange. Only both on
 * ports that their programs chose do so: other peers stay what they were found to be. Within an exchange, and
 * where anything is in doubt, these do, too.
 */
#pragma once

#include "socket_datagram_ring.bpf.h"
#include "socket_roles.bpf.h"

/* In units of `spoke`. So long, 84 to 101 ms, nothing has gone either way. */
#define SILENCE 6
/* Between nodes that do ask each other what is open by then is lost: 1.0 s. */
#define LONG_SILENCE 60
/* DATAGRAM_PATIENCE_NS: 5.0 s. */
#define LONGEST_SILENCE 299

/* In place of the dependency slot of a peer that is called by now: it has still to be found. */
#define SLOT_TO_BE_FOUND (~0U)

static __always_inline bool may_ask_each_other(struct sock *sk, u64 address)
{
	return address > ADDRESS_ANY && FIELD(sk, __sk_common.skc_num) < FIRST_EPHEMERAL_PORT &&
	       port_of_address(address) < FIRST_EPHEMERAL_PORT;
}

static __always_inline u32 silence_with(struct datagram_peer *peer, u64 now)
{
	u16 time = now >> SPOKE_SHIFT, silence = time - peer->spoke;

	peer->spoke = time;
	return silence;
}

/* Is what seems open lost? */
static __always_inline bool is_given_up(const struct datagram_peer *peer, u32 silence)
{
	if (peer->asks_and_serves)
		return silence > LONG_SILENCE;
	/* A request may be answered late: it is one even then. */
	return peer->role == PEER_CALLED && silence > LONGEST_SILENCE;
}

/*
 * Something goes to a peer, or comes from it. A global function: the verifier works through it once a
 * program.
 * @param role the one that the peer has if this begins an exchange
 * @param doubted if nothing is open with the peer, it may be a reply to someone who is not known, or come
 * from someone else
 */
__noinline int note_turn(u64 id, u32 role, u32 doubted, u64 now)
{
	struct datagram_peer *peer = find_datagram_peer(id);
	u32 silence;

	if (!peer)
		return 0;
	silence = silence_with(peer, now);
	if (silence < SILENCE || (peer->open ? !is_given_up(peer, silence) : doubted))
		return 0;
	peer->open = peer->run = 0;
	if (peer->role == role)
		return 0;
	peer->role = role;
	peer->asks_and_serves = true;
	peer->first = role == PEER_CALLED ? SLOT_TO_BE_FOUND : 0;
	return 0;
}
