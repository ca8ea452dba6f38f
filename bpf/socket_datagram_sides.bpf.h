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

/* Of so long a silence, with nothing open, both know that what comes next begins an exchange. */
#define BETWEEN_EXCHANGES_NS 100000000ULL

/*
 * Something goes to the peer (1) or comes from it (-1). Where in an exchange that is, is told by counting:
 * once something was read of which the sender is not known, or not for sure, nothing is concluded from what
 * the count says until there has been a silence. Else every such read would seem to change who begins.
 */
static __always_inline void note_exchange(struct datagram_peer *peer, s32 step, u8 slips, u64 now)
{
	s32 before = peer->balance, balance = before + step;
	u32 swings = peer->swings;

	if (peer->slips != slips) {
		peer->slips = slips;
		peer->lost = 1;
		swings /= 2;
	}
	if (peer->lost) {
		if (!peer->open && now - peer->seen > BETWEEN_EXCHANGES_NS) {
			peer->lost = 0;
			peer->began = 0;
			balance = step;
		}
	} else if (balance > 1 || balance < -1) {
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
		peer->both = 1;
		peer->open = 0;
	}
	if (!swings)
		peer->both = 0;
	peer->balance = balance;
	peer->swings = swings;
}

/* What side_of_peer() is asked of. */
enum {
	COMES_FROM_THERE,
	GOES_THERE,
	ANSWERS_SOMEBODY, /* the same, and requests are open of which nobody knows whose they are */
};

/* In place of the dependency slot of a peer that is called by now: it has still to be found. */
#define SLOT_TO_BE_FOUND (~0U)

/*
 * The peer in the role that it has now: what goes to it answers its request, if there is one, and what comes
 * from it a call.
 * @param slips of its socket
 * @return the id of the peer in that role
 */
static __always_inline u64 side_of(struct datagram_peer *peer, u64 id, u32 what, u32 slips, u64 now)
{
	u8 role = what == COMES_FROM_THERE ? PEER_CALLED : PEER_SERVED;
	struct datagram_peer *asked, *asking;

	note_exchange(peer, what == COMES_FROM_THERE ? -1 : 1, slips, now);
	if (!peer->both)
		return id;
	asked = find_datagram_peer(id ^ OTHER_SIDE);
	asking = peer;
	if (peer->role == role) {
		asking = asked;
		asked = peer;
	}
	if (asked && (asked->open || what == ANSWERS_SOMEBODY))
		return asked->id;
	/* Nothing is open: another exchange begins. */
	if (asking)
		return asking->id;
	asking =
	    add_datagram_peer(id ^ OTHER_SIDE, what == COMES_FROM_THERE ? PEER_SERVED : PEER_CALLED, now);
	if (!asking)
		return id;
	if (what != COMES_FROM_THERE)
		asking->first = SLOT_TO_BE_FOUND;
	return asking->id;
}

/* The same, if such a peer is known. A global function: the verifier works through it once a program. */
__noinline u64 side_of_peer(u64 id, u32 what, u32 slips, u64 now)
{
	struct datagram_peer *peer = find_datagram_peer(id);

	return peer ? side_of(peer, id, what, slips, now) : id;
}

/*
 * A socket waits for an answer of a peer that it has called, and something comes from elsewhere: from another
 * port (TFTP), or another address of the server. What goes there from now on is called like that one.
 */
static __noinline bool is_called_elsewhere(u64 called_id, u64 id, u64 now)
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

/* A call to a peer that waits for its answer: the peer's id in that role; 0: there is none. */
static __noinline u64 open_call_to(u64 socket, u64 address)
{
	u64 id = peer_of(socket, address);
	struct datagram_peer *peer = address ? find_datagram_peer(id) : NULL;

	if (peer && peer->role != PEER_CALLED && peer->both)
		peer = find_datagram_peer(id ^ OTHER_SIDE);
	return peer && peer->role == PEER_CALLED && peer->open ? peer->id : 0;
}

/* What is known of a datagram that was received; below it stand the slips of its socket. */
enum {
	MAY_HAVE_CALLED_ALL =
	    1 << 8, /* whoever answers a call to everybody (broadcast, multicast) was called */
	FROM_UNKNOWN = 1 << 9,
	MAY_COME_FROM_ELSEWHERE = 1 << 10,
	HAS_CALLED_BEFORE = 1 << 11,
};

/*
 * Who has sent a datagram. A global function: the verifier works through it once a program, and goes on with
 * a number.
 * @param socket its number
 * @param address of the sender; if that is unknown, the one that was called before the last
 * @param called the one that was called last; 0: nobody was
 * @return the id of a peer; 0: unknown
 */
__noinline u64 id_of_sender(u64 socket, u64 address, u64 called, u32 what, u64 now)
{
	u64 id = peer_of(socket, address), all = peer_of(socket, ADDRESS_SOLE);
	struct datagram_peer *peer = what & FROM_UNKNOWN ? NULL : find_datagram_peer(id);

	if (peer)
		return side_of(peer, id, COMES_FROM_THERE, (u8)what, now);
	peer = what & MAY_HAVE_CALLED_ALL ? find_datagram_peer(all) : NULL;
	if (peer && peer->role == PEER_CALLED && now - peer->seen < DATAGRAM_PATIENCE_NS)
		return all;
	if (what & FROM_UNKNOWN) {
		/* It was read before the hook of its arrival ran: an answer, where one is awaited. */
		u64 call = called ? open_call_to(socket, called) : 0;

		return call || !called ? call : open_call_to(socket, address);
	}
	if (!(what & MAY_COME_FROM_ELSEWHERE && is_called_elsewhere(peer_of(socket, called), id, now)))
		add_datagram_peer(id, what & HAS_CALLED_BEFORE ? PEER_CALLED : PEER_SERVED, now);
	return id;
}
