/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Two nodes that ask each other on one pair of ports (SIP, gossip, consensus): a peer is served and called.
 *
 * Who spoke first on a socket tells nothing then, but who speaks first in each exchange does: after one that
 * we began comes one that the peer began. A client whose answers come in pieces, or that asks again, looks
 * alike for an exchange or two, but then one side has sent more often than the other. So the sides are told
 * apart after some changes, and for as long as there are some.
 */
#pragma once

#include "socket_datagram_calls.bpf.h"

/* A change of who begins adds so much, an exchange without one takes CALM. */
#define SWING 16
#define CALM 4
#define SWINGS_OF_BOTH (4 * SWING + 1)
#define MOST_SWINGS (8 * SWING)
/* The other role of a peer is at the id with this bit changed: in the same bucket. */
#define OTHER_SIDE 2ULL

/* Something goes to the peer (1) or comes from it (-1). */
static __always_inline void note_exchange(struct datagram_peer *peer, s32 step)
{
	s32 before = peer->balance, balance = before + step;
	u32 swings = peer->swings;

	if (balance > 1 || balance < -1) {
		/* Several at a time, or a loss: who speaks next may be anybody. */
		swings = swings > 2 * SWING ? swings - 2 * SWING : 0;
		balance = 0;
		peer->began = 0;
	} else if (!balance) {
		if (peer->began == -before)
			swings = swings + SWING < MOST_SWINGS ? swings + SWING : MOST_SWINGS;
		else
			swings = swings > CALM ? swings - CALM : 0;
		peer->began = before;
	} else if (swings >= SWINGS_OF_BOTH && !peer->both) {
		/* An exchange begins. What seems open is an answer that was taken for a request, or the
		 * reverse. */
		peer->both = true;
		peer->open = 0;
	}
	if (!swings)
		peer->both = false;
	peer->balance = balance;
	peer->swings = swings;
}

/* In place of the dependency slot of a peer that is called by now: it has still to be found. */
#define SLOT_TO_BE_FOUND (~0U)

/*
 * The peer with this id in the role that it has now: what goes to it answers its request, if there is one,
 * and what comes from it a call. A global function: the verifier works through it once a program.
 * @param sends whether something goes there, or comes from there
 * @param doubted where some senders are not known, exchanges seem to change sides
 * @return the id of the peer in that role
 */
__noinline u64 side_of_peer(u64 id, u32 sends, u32 doubted, u64 now)
{
	struct datagram_peer *peer = find_datagram_peer(id), *asked, *asking;
	u8 role = sends ? PEER_SERVED : PEER_CALLED;

	if (!peer)
		return id;
	if (!doubted)
		note_exchange(peer, sends ? 1 : -1);
	if (!peer->both)
		return id;
	asked = find_datagram_peer(id ^ OTHER_SIDE);
	asking = peer;
	if (peer->role == role) {
		asking = asked;
		asked = peer;
	}
	if (asked && asked->open)
		return asked->id;
	/* Nothing is open: another exchange begins. */
	if (asking)
		return asking->id;
	asking = add_datagram_peer(id ^ OTHER_SIDE, sends ? PEER_CALLED : PEER_SERVED, now);
	if (!asking)
		return id;
	if (sends)
		asking->first = SLOT_TO_BE_FOUND;
	return asking->id;
}

/*
 * A socket waits for an answer of a peer that it has called, and something comes from elsewhere: from another
 * port (TFTP), or another address of the server. What goes there from now on is called like that one.
 */
__noinline u32 is_called_elsewhere(u64 called_id, u64 id, u64 now)
{
	struct datagram_peer *called = find_datagram_peer(called_id), *peer;
	u64 seen;
	u32 slot;

	if (!called || called->role != PEER_CALLED || !called->open ||
	    now - called->seen > DATAGRAM_PATIENCE_NS)
		return false;
	called->open--;
	slot = called->first;
	seen = called->seen;
	peer = add_datagram_peer(id, PEER_CALLED, seen);
	if (!peer)
		return false;
	peer->first = slot;
	peer->open = peer->run = 1;
	peer->balance = 0;
	return true;
}
