/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Turns of a TLS handshake are no requests.
 *
 * A connection speaks TLS if one of its first turns begins with a record of type handshake, version 3.x (RFC 8446, 5.1):
 * the ClientHello. The turns that belong to its handshake begin with a handshake or change_cipher_spec record, or, from a
 * TLS 1.3 client that leaves the latter out, are the one that follows the hello. Such a turn is a request all the same
 * if it brings more than the client's last flight can be long: then the first request came along. Only the first two
 * bytes that a server reads in the first turns of a connection are looked at, in the buffer of the system call that
 * reads them; io_uring's is not found, and its handshakes count as requests.
 */
#pragma once

#include "socket_state.bpf.h"

/* A handshake may follow a plain exchange (PostgreSQL's SSLRequest, STARTTLS). */
#define TLS_TURNS 6
/* change_cipher_spec (6) and Finished with SHA-384 under TLS 1.3 (5 + 4 + 48 + 1 + 16), rounded up. */
#define LAST_FLIGHT_BYTES 96
/* close_notify: 24 bytes in TLS 1.3, 31 with AES-GCM in TLS 1.2, more with a MAC and padding. */
#define CLOSE_NOTIFY_BYTES 64

enum tls_state {
	TLS_NONE,
	TLS_HELLO,     /* the open turn, or the one before, began with a handshake record */
	TLS_FLIGHT,    /* the open turn is the client's last flight, if it stays short */
	TLS_CONNECTED, /* requests from here on */
};

enum { TLS_CHANGE_CIPHER_SPEC = 20, TLS_HANDSHAKE = 22, TLS_APPLICATION_DATA = 23 };

#if defined(__TARGET_ARCH_x86)
enum { NR_READ = 0, NR_READV = 19, NR_RECVFROM = 45, NR_RECVMSG = 47 };
#elif defined(__TARGET_ARCH_arm64)
enum { NR_READ = 63, NR_READV = 65, NR_RECVFROM = 207, NR_RECVMSG = 212 };
#endif

/* struct msghdr of user space on 64 bit: a pointer and a padded int before the vector. */
#define MSGHDR_IOV 16

/* The buffer that the running system call has received into; NULL if it is not a call that we know. */
static __always_inline const void *received_into(void)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(bpf_get_current_task_btf());
	const void *second = (const void *)PT_REGS_PARM2_CORE_SYSCALL(regs);
	const void *vector = second;
	const void *buffer = NULL;

	switch (BPF_CORE_READ(regs, SYSCALL_NUMBER)) {
	case NR_READ:
	case NR_RECVFROM:
		return second;
	case NR_RECVMSG:
		if (bpf_probe_read_user(&vector, sizeof(vector), second + MSGHDR_IOV))
			return NULL;
		break;
	case NR_READV:
		break;
	default:
		return NULL;
	}
	/* The first member of struct iovec. */
	if (bpf_probe_read_user(&buffer, sizeof(buffer), vector))
		return NULL;
	return buffer;
}

/* A turn begins: does it look like one of a handshake? */
static __always_inline void begin_handshake_turn(struct socket_state *st)
{
	const void *buffer;
	u8 record[2] = {};

	if (st->turns >= TLS_TURNS || st->tls == TLS_CONNECTED)
		return;
	st->turns++;
	buffer = received_into();
	if (!buffer || bpf_probe_read_user(record, sizeof(record), buffer) || record[1] != 3) {
		st->tls = TLS_NONE;
		return;
	}
	if (record[0] == TLS_HANDSHAKE)
		st->tls = TLS_HELLO;
	else if (st->tls == TLS_HELLO && (record[0] == TLS_CHANGE_CIPHER_SPEC || record[0] == TLS_APPLICATION_DATA))
		st->tls = TLS_FLIGHT;
	else
		st->tls = TLS_NONE;
}

static __always_inline bool in_handshake(const struct socket_state *st)
{
	return st->tls == TLS_HELLO || st->tls == TLS_FLIGHT;
}

/* The open turn is answered: was it only handshake? */
static __always_inline bool end_handshake_turn(struct socket_state *st)
{
	if (st->tls == TLS_HELLO)
		return true;
	st->tls = TLS_CONNECTED;
	return st->turn_bytes <= LAST_FLIGHT_BYTES;
}

/* A connection ends with the turn open: was it only the goodbye of TLS? */
static __always_inline bool is_close_notify(const struct socket_state *st)
{
	return st->tls == TLS_CONNECTED && st->turn_bytes <= CLOSE_NOTIFY_BYTES;
}
