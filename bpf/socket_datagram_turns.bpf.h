/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Nodes that ask each other on one pair of ports (gossip, consensus, SIP): who has ever spoken first tells
 * nothing then, but if as much has come from there as has gone there, who speaks next begins an exchange.
 * Once the role has changed so after a silence, which no answer in pieces explains, it changes without one,
 * too. Only both on ports that their programs chose do so: other peers stay what they were found to be.
 * Within an exchange, and where anything is in doubt, these do, too.
 */
#pragma once

#include "socket_datagram_ring.bpf.h"

/* In units of `spoke`. So long, 84 to 101 ms, nothing has gone either way. */
#define SILENCE 6
/* Between nodes that do ask each other what is open by then is lost: 0.5 s. */
#define LONG_SILENCE 30
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

/* Is it in the middle of an exchange, and this the second half of it? */
static __always_inline bool is_awaited(const struct datagram_peer *peer, bool goes)
{
	return goes ? peer->role == PEER_SERVED && peer->balance < 0
		    : peer->role == PEER_CALLED && peer->balance > 0;
}

/* Has it been silent for so long that nobody waits for anything any more? */
static __always_inline bool has_given_up(const struct datagram_peer *peer, bool goes, u32 silence)
{
	if (peer->asks_and_serves)
		return silence > LONG_SILENCE;
	/* A request may be answered late: it is one even then. */
	return silence > LONGEST_SILENCE && !(goes && peer->role == PEER_SERVED && peer->open);
}

/* Something goes to the peer, or comes from it: does an exchange begin? */
static __always_inline bool begins_exchange(struct datagram_peer *peer, bool goes, u8 slips, u32 silence)
{
	if (peer->slips != slips) {
		peer->slips = slips;
		peer->is_lost = 1;
	}
	if (has_given_up(peer, goes, silence))
		return true;
	if (silence >= SILENCE) {
		/* It begins one in the role that it has anyway. */
		if (!peer->open && peer->role == (goes ? PEER_CALLED : PEER_SERVED))
			return true;
		if (peer->balance && !is_awaited(peer, goes))
			peer->is_lost = 1;
	}
	return !peer->is_lost && !peer->balance && (peer->asks_and_serves || silence >= SILENCE);
}

/* What note_turn() is asked of; below it stand the slips of its socket. */
enum {
	TURN_GOES = 1 << 8,    /* something goes to the peer; else it comes from there */
	TURN_DOUBTED = 1 << 9, /* it may answer somebody who is not known */
};

/*
 * Something goes to a peer, or comes from it. What is counted of that is out of step once a datagram was read
 * of which the sender is not known for sure (`slips`), or one was lost: then nothing begins before a long
 * silence. A global function: the verifier works through it once a program.
 */
__noinline int note_turn(u64 id, u32 what, u64 now)
{
	struct datagram_peer *peer = find_datagram_peer(id);
	bool goes = what & TURN_GOES;
	u8 role = goes ? PEER_CALLED : PEER_SERVED;
	s32 balance;

	if (!peer)
		return 0;
	if (begins_exchange(peer, goes, what, silence_with(peer, now)) && !(what & TURN_DOUBTED)) {
		peer->open = peer->run = 0;
		peer->is_lost = 0;
		peer->balance = 0;
		if (peer->role != role) {
			peer->role = role;
			peer->asks_and_serves = 1;
			peer->first = goes ? SLOT_TO_BE_FOUND : 0;
		}
	}
	balance = peer->balance + (goes ? 1 : -1);
	if (balance > MOST_BALANCE || balance < -MOST_BALANCE)
		peer->is_lost = 1;
	else
		peer->balance = balance;
	return 0;
}

/* What comes still later to somebody is no reply of which nobody knows to what. */
#define LATE_REPLIES_NS 60000000000ULL

/* Of forgotten requests it is not known whose they are, nor of some that are open. */
static __always_inline u32 turn_to_peer(const struct socket_state *st, const struct datagram_ring *ring,
					u64 now)
{
	bool doubted = ring && (ring->anonymous || (ring->gone && now - ring->gone_at < LATE_REPLIES_NS));

	return st->slips | TURN_GOES | (doubted ? TURN_DOUBTED : 0);
}
