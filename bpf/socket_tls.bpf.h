/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * The progress of a connection in TLS, the header of a record that the running call has read or sent, and
 * TLS' goodbye (close_notify, RFC 8446, 6.1), which is no request and no reply. TLS 1.2 shows its type. Under
 * TLS 1.3 it looks like data of two bytes: whether it was a goodbye is known when the connection goes on, or
 * ends. Where the kernel has the keys (kTLS), a program sends and reads what is inside of records; a goodbye
 * is two bytes then, too.
 */
#pragma once

#include "socket_buffers.bpf.h"
#include "socket_records.bpf.h"
#include "socket_state.bpf.h"

/* A handshake may follow a plain exchange (PostgreSQL's SSLRequest, STARTTLS). */
#define TLS_TURNS 6

/* close_notify: 24 bytes in TLS 1.3, 31 with AES-GCM in TLS 1.2, more with a MAC and padding. */
#define CLOSE_NOTIFY_BYTES 96
#define CLOSE_NOTIFY_TLS13 24
/* Java adds 16 bytes of nothing to each record, and says that it ends (user_canceled) before its goodbye. */
#define CLOSE_NOTIFY_PADDED 40
#define CLOSE_NOTIFY_PADDED_TWICE 80
/* Its level and its description, which is all that passes a socket with kTLS. */
#define ALERT_BYTES 2
/* Its record in TLS 1.3: two bytes, the type, and a tag of 16, or of 8 (AES-CCM-8). */
#define SHORT_RECORD 19
#define SHORT_RECORD_CCM_8 11
#define SHORT_RECORD_PADDED 35

enum tls_state {
	TLS_NONE,
	TLS_CONNECTED, /* requests from here on */
	/* In all other states the open turn may turn out to be no request. */
	TLS_PROXIED, /* the open turn began with the header of a proxy, or the like */
	TLS_HELLO,   /* the open turn, or the one before, brought a ClientHello */
	TLS_FLIGHT,  /* TLS 1.3: the open turn is the client's last flight, if it stays short */
	TLS_FINAL, /* TLS 1.2: the open turn is the client's last flight; client: it has begun to send that */
	TLS_RESUMES, /* client: change_cipher_spec is all that it has sent of its last flight */
	TLS_ALERT,   /* the open turn began with an alert */
	TLS_SHORT,   /* TLS 1.3: the open turn began with a record of the length of an alert */
	TLS_HELD,    /* such a turn was answered alike: a goodbye if the connection ends now */
	TLS_LAST,   /* a longer one was answered so: if the server ends the connection now, it got no reply */
	TLS_TICKET, /* TLS 1.3: a request came with the last flight, and something short was sent: a ticket,
		       or the reply */
	TLS_ASKED,  /* the same, and it is known which of both it was */
	TLS_REST,   /* the open turn is the rest of such a request, which has been counted */
	TLS_OPENING, /* HTTP/2: the open turn is the first one, which may bring settings alone */
	TLS_PADDED,  /* client, TLS 1.3: what was sent last is as long as Java's goodbye */
};

static __always_inline bool is_short_record(u32 length)
{
	return length == SHORT_RECORD || length == SHORT_RECORD_CCM_8 || length == SHORT_RECORD_PADDED;
}

/* Is it as long as what Java, under TLS 1.3, says at the end? */
static __always_inline bool is_padded_goodbye(u32 bytes)
{
	return bytes == CLOSE_NOTIFY_PADDED || bytes == CLOSE_NOTIFY_PADDED_TWICE;
}

/* Messages of a handshake (RFC 8446, 4): type, length in three bytes, the most significant one first. */
#define CLIENT_HELLO 1
#define SERVER_HELLO 2
#define MESSAGE_HEADER 4
/* Version (2), random (32), session (1), suite (2), compression (1). */
#define SERVER_HELLO_LEAST 38

/* Of the message that begins at `offset` in what the running call has: type, and from bit 8 on its length.
 */
static __always_inline u32 message_header(u32 offset)
{
	const void *header = bytes_of_call(offset, MESSAGE_HEADER);
	u8 head[MESSAGE_HEADER];

	if (!header || bpf_probe_read_user(head, sizeof(head), header) || head[1])
		return 0;
	return ((u32)head[2] << 8 | head[3]) << 8 | head[0];
}

/*
 * Does a handshake's message stand at `offset` of a read of so many bytes that is no ClientHello? Then the
 * handshake is older than tacho. A ClientHello fills its record, which is so long, or more of them: what is
 * encrypted may begin with the same byte. False if the read ends before. A global function, too.
 */
__noinline u32 is_later_message(u32 offset, u32 bytes, u32 record)
{
	const void *type = bytes_of_call(offset, 1);
	u8 message = CLIENT_HELLO;
	u32 header;

	if (!type || offset >= bytes || bpf_probe_read_user(&message, sizeof(message), type))
		return false;
	if (message != CLIENT_HELLO || bytes - offset < MESSAGE_HEADER)
		return message != CLIENT_HELLO;
	header = message_header(offset);
	return !header || (header >> 8) + MESSAGE_HEADER < record;
}

/*
 * Does what the running call sends begin with a ServerHello? A ticket and Finished, which TLS 1.2 sends in
 * records of the same type, do not. A global function, too.
 */
__noinline u32 sends_server_hello(void)
{
	u32 record = record_header(0);
	u32 header;

	if ((u8)record != TLS_HANDSHAKE)
		return false;
	header = message_header(TLS_RECORD_HEADER);
	return (u8)header == SERVER_HELLO && header >> 8 >= SERVER_HELLO_LEAST &&
	       (header >> 8) + MESSAGE_HEADER <= record >> 8;
}

/*
 * What a turn is that begins with a read of so many bytes, as short as a goodbye: enum tls_state, TLS_NONE if
 * its bytes are not found. A global function, too.
 */
__noinline u32 short_turn(u32 bytes)
{
	const void *buffer;
	u8 record[TLS_RECORD_HEADER] = {};
	u32 length;

	/* No record is as short. */
	if (bytes == ALERT_BYTES)
		return TLS_SHORT;
	buffer = first_buffer(NULL);
	if (!buffer || bpf_probe_read_user(record, sizeof(record), buffer))
		return TLS_NONE;
	if (record[1] != 3)
		return TLS_CONNECTED;
	if (record[0] == TLS_ALERT_RECORD)
		return TLS_ALERT;
	length = (u32)record[3] << 8 | record[4];
	if (record[0] == TLS_APPLICATION_DATA && is_short_record(length))
		return TLS_SHORT;
	return TLS_CONNECTED;
}

static __always_inline bool in_handshake(const struct socket_state *st)
{
	return st->tls == TLS_HELLO || st->tls == TLS_FLIGHT || st->tls == TLS_FINAL;
}

/* The turn before was answered, unless what was sent turns out to be a goodbye, or a ticket. */
static __always_inline bool is_held(const struct socket_state *st)
{
	return st->tls == TLS_HELD || st->tls == TLS_LAST || st->tls == TLS_TICKET;
}

/*
 * Were only tickets and settings sent since a request came with the last flight? They may have been the
 * pieces of its reply, all as long, if nothing follows.
 */
static __always_inline bool got_tickets(const struct socket_state *st)
{
	const union record_watch answered = {.all = st->records};

	return st->tls == TLS_ASKED && answered.unfinished && !answered.counted && st->first_reply;
}

static __always_inline bool speaks_tls(const struct socket_state *st)
{
	return st->tls == TLS_CONNECTED || st->tls >= TLS_ALERT;
}

static __always_inline u8 connected_turn(u32 bytes)
{
	u32 kind;

	if (bytes > CLOSE_NOTIFY_BYTES)
		return TLS_CONNECTED;
	kind = short_turn(bytes);
	/* Its length alone has to tell. */
	return kind == TLS_NONE ? TLS_SHORT : kind;
}

/* Is it as long as a goodbye under TLS 1.3, with the header of its record or without? */
static __always_inline bool may_be_goodbye(u32 bytes)
{
	return bytes == CLOSE_NOTIFY_TLS13 || bytes == CLOSE_NOTIFY_TLS13 - TLS_RECORD_HEADER ||
	       bytes == CLOSE_NOTIFY_PADDED - TLS_RECORD_HEADER || is_padded_goodbye(bytes) ||
	       bytes == ALERT_BYTES;
}

/*
 * A goodbye is answered by one, which is as long, or padded, or of which kTLS shows less; a message as short
 * may come before it.
 */
static __always_inline bool is_answered_alike(u32 turn, u32 bytes)
{
	if (bytes == ALERT_BYTES)
		return turn <= 2 * CLOSE_NOTIFY_TLS13 || turn == CLOSE_NOTIFY_PADDED_TWICE;
	if (bytes == CLOSE_NOTIFY_TLS13)
		return turn == bytes || turn == 2 * bytes || is_padded_goodbye(turn);
	if (is_padded_goodbye(bytes))
		return turn == CLOSE_NOTIFY_TLS13 || is_padded_goodbye(turn);
	return (turn == bytes || turn == 2 * bytes) && bytes <= CLOSE_NOTIFY_BYTES;
}

static __always_inline bool has_shut_down(const struct tcp_sock *tp)
{
	return FIELD((const struct sock *)tp, sk_shutdown) & RCV_SHUTDOWN;
}

/* Has the client gone, or said goodbye? That has not been read yet, or was read last. */
static __always_inline bool has_parted(const struct socket_state *st, const struct tcp_sock *tp)
{
	return (tp && (FIELD(tp, rcv_nxt) != FIELD(tp, copied_seq) || has_shut_down(tp))) ||
	       may_be_goodbye(st->read_bytes);
}

/* Is what the running call sends a goodbye (TLS_ALERT), or as short as one is under TLS 1.3 (TLS_SHORT)? */
static __always_inline u32 sends_goodbye(u32 bytes)
{
	u32 kind;

	if (bytes > CLOSE_NOTIFY_BYTES)
		return TLS_NONE;
	kind = short_turn(bytes);
	if (kind == TLS_ALERT)
		return TLS_ALERT;
	return bytes <= CLOSE_NOTIFY_TLS13 && (kind == TLS_SHORT || kind == TLS_NONE) ? TLS_SHORT : TLS_NONE;
}

/*
 * Is what the running call sends as reply a goodbye? Servers say theirs when a client has gone, whose last
 * message (PostgreSQL's Terminate, LDAP's unbind) gets no reply. Under TLS 1.3 that is known later.
 */
static __always_inline bool may_say_goodbye(struct socket_state *st, const struct tcp_sock *tp, u32 bytes)
{
	u32 kind = sends_goodbye(bytes);

	if (kind == TLS_NONE)
		return false;
	st->parted = kind == TLS_ALERT || has_parted(st, tp);
	return true;
}
