/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Turns of a TLS handshake are no requests, and no calls of a client.
 *
 * A connection speaks TLS if one of its first turns begins with a record of type handshake, version 3.x (RFC
 * 8446, 5.1): the ClientHello. The turns that belong to its handshake begin with a handshake or
 * change_cipher_spec record, or, from a TLS 1.3 client that leaves the latter out, are the one that follows
 * the hello. Such a turn is a request all the same if it brings more than the client's last flight can be
 * long: then the first request came along. Only the first two bytes that a server reads in the first turns of
 * a connection are looked at, in the buffer of the system call that reads them; io_uring's is not found, and
 * its handshakes count as requests.
 */
#pragma once

#include "socket_buffers.bpf.h"
#include "socket_state.bpf.h"

/* A handshake may follow a plain exchange (PostgreSQL's SSLRequest, STARTTLS). */
#define TLS_TURNS 6
#define CHANGE_CIPHER_SPEC_BYTES 6
/* change_cipher_spec (6) and Finished with SHA-384 under TLS 1.3 (5 + 4 + 48 + 1 + 16), rounded up. */
#define LAST_FLIGHT_BYTES 96
/* close_notify: 24 bytes in TLS 1.3, 31 with AES-GCM in TLS 1.2, more with a MAC and padding. */
#define CLOSE_NOTIFY_BYTES 64

enum tls_state {
	TLS_NONE,
	TLS_HELLO,     /* the open turn, or the one before, brought a ClientHello */
	TLS_FLIGHT,    /* TLS 1.3: the open turn is the client's last flight, if it stays short */
	TLS_FINAL,     /* TLS 1.2: the open turn is the client's last flight */
	TLS_CONNECTED, /* requests from here on */
};

enum { TLS_CHANGE_CIPHER_SPEC = 20, TLS_HANDSHAKE = 22, TLS_APPLICATION_DATA = 23 };

/*
 * The type of the record that the running call has read the beginning of; 0 if it does not look like one.
 * A global function: the verifier works through it once a program, not on every path that comes here.
 */
__noinline u32 record_type(void)
{
	const void *buffer = first_buffer(NULL);
	u8 record[2] = {};

	if (!buffer || bpf_probe_read_user(record, sizeof(record), buffer) || record[1] != 3)
		return 0;
	return record[0];
}

/* A turn begins: does it look like one of a handshake? */
static __always_inline void begin_handshake_turn(struct socket_state *st)
{
	u8 before = st->tls;
	u8 type;

	if (before == TLS_CONNECTED)
		return;
	st->tls = TLS_NONE;
	if (st->turns >= TLS_TURNS)
		return;
	st->turns++;
	type = record_type();
	if (type == TLS_HANDSHAKE)
		st->tls = before == TLS_HELLO ? TLS_FINAL : TLS_HELLO;
	else if (before == TLS_HELLO && (type == TLS_CHANGE_CIPHER_SPEC || type == TLS_APPLICATION_DATA))
		st->tls = TLS_FLIGHT;
}

/*
 * More is read in a turn: a second ClientHello (HelloRetryRequest) comes right behind change_cipher_spec.
 * Only there does a record begin for sure; elsewhere what is read may be the inside of one, where any bytes
 * can stand.
 */
static __always_inline void continue_handshake_turn(struct socket_state *st)
{
	if (st->tls == TLS_FLIGHT && st->turn_bytes == CHANGE_CIPHER_SPEC_BYTES &&
	    record_type() == TLS_HANDSHAKE)
		st->tls = TLS_HELLO;
}

static __always_inline bool in_handshake(const struct socket_state *st)
{
	return st->tls == TLS_HELLO || st->tls == TLS_FLIGHT || st->tls == TLS_FINAL;
}

/* The open turn is answered: was it only handshake? */
static __always_inline bool end_handshake_turn(struct socket_state *st)
{
	bool is_long = st->tls == TLS_FLIGHT && st->turn_bytes > LAST_FLIGHT_BYTES;

	if (st->tls != TLS_HELLO)
		st->tls = TLS_CONNECTED;
	return !is_long;
}

/* A connection ends with the turn open: was it only the goodbye of TLS? */
static __always_inline bool is_close_notify(const struct socket_state *st)
{
	return st->tls == TLS_CONNECTED && st->turn_bytes <= CLOSE_NOTIFY_BYTES;
}

/*
 * An answer to a client begins: does it carry the handshake on? The server's flights begin with a handshake
 * record, or with change_cipher_spec (TLS 1.2 without a ticket); once data of the application comes, the
 * handshake is over.
 */
static __always_inline bool answers_handshake(struct socket_state *st)
{
	u8 type;

	if (st->tls == TLS_CONNECTED || st->turns >= TLS_TURNS)
		return false;
	st->turns++;
	type = record_type();
	if (type == TLS_HANDSHAKE || (type == TLS_CHANGE_CIPHER_SPEC && st->tls == TLS_HELLO)) {
		st->tls = TLS_HELLO;
		return true;
	}
	if (st->tls == TLS_HELLO)
		st->tls = TLS_CONNECTED;
	return false;
}
