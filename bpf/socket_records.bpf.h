/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Finds the beginnings of TLS records in the data that a server reads, from one turn's beginning on, however
 * its library cuts them: some libraries read the five bytes of a header and then the record, some read all
 * that has arrived.
 *
 * This has two uses. In a client's last flight under TLS 1.3 it shows where the handshake ends, whatever
 * certificates precede Finished, and whether a request follows it. In an examined turn it shows whether
 * several requests arrived at once: those are records in a row that are short and alike in length. Head and
 * body of one request differ, and a large body comes in records of the largest size, or of growing sizes.
 *
 * A read into several buffers is followed through the first few; behind them lengths have to suffice.
 */
#pragma once

#include "socket_buffers.bpf.h"
#include "socket_state.bpf.h"

#define TLS_RECORD_HEADER 5
/* None is longer than 2^14 + 2048 bytes. */
#define TLS_RECORD_MOST 18432

enum { TLS_CHANGE_CIPHER_SPEC = 20, TLS_ALERT_RECORD = 21, TLS_HANDSHAKE = 22, TLS_APPLICATION_DATA = 23 };

/* So many of one read are examined: that suffices. */
#define RECORDS_PER_READ 16
/* So many are counted behind Finished. */
#define RECORDS_BEHIND_MOST 15
/* A session ticket is longer than whatever is sent right behind it, where that is looked at. */
#define TICKET_RECORD_LEAST 90
/* No record begins that far behind a read. */
#define RECORDS_LOST 0xffff

/* A Finished under TLS 1.3: header (4), hash (32 or 48), type (1) and tag (16, of AES-CCM-8 8). */
#define FINISHED_SHA256 53
#define FINISHED_SHA384 69
#define FINISHED_CCM_8 45
/* Java adds 16 bytes of nothing to each record. */
#define FINISHED_SHA384_PADDED 85
/* That of a client which resumes a session of TLS 1.2: encrypted, with a MAC and padding at most so long. */
#define FINISHED_TLS12_MOST 96
/* EndOfEarlyData, which may stand before it. */
#define END_OF_EARLY_DATA 21

/* So many records alike are several requests. */
#define RECORDS_OF_SEVERAL 3
/* Requests are shorter. The first records of a large body have the size of a segment, and grow. */
#define SHORT_REQUEST_RECORD 1100
/* What encryption adds to the data of a record. */
#define RECORD_OVERHEAD 16
/* A handshake record has a message's header at least (RFC 8446, 4). */
#define HANDSHAKE_RECORD_LEAST 4

/*
 * Type and, from the ninth bit on, length of the record that begins at `offset` in what the running call has
 * read or sent; 0 if it does not look like one. Other protocols begin with a length, which may be as the
 * first two bytes of a record; its version and length tell them apart. A global function: the verifier works
 * through it once a program, not on every path that comes here.
 */
__noinline u32 record_header(u32 offset)
{
	const void *header = bytes_of_call(offset, TLS_RECORD_HEADER);
	u8 record[TLS_RECORD_HEADER] = {};
	u32 length;

	if (!header || bpf_probe_read_user(record, sizeof(record), header))
		return 0;
	length = (u32)record[3] << 8 | record[4];
	if (record[1] != 3 || !record[2] || record[2] > 4 || length > TLS_RECORD_MOST)
		return 0;
	if (record[0] == TLS_HANDSHAKE && length < HANDSHAKE_RECORD_LEAST)
		return 0;
	return length << 8 | record[0];
}

static __always_inline u8 record_type(u32 offset)
{
	return record_header(offset);
}

enum record_watch_flags {
	WATCH_FLIGHT = 1,
	WATCH_REQUESTS = 2,
	WATCH_FINISHED = 4,   /* it has come */
	WATCH_EARLY = 8,      /* early data came with the hello, and is to be answered yet */
	WATCH_EARLY_END = 16, /* the client has told its end: it was accepted */
	WATCH_TICKETS = 32, /* of HTTP/2's settings (socket_settings.bpf.h): only tickets were sent so far */
	WATCH_SETTLED = 64, /* something was sent that was no reply */
	WATCH_PROOF = 128,  /* for a certificate that was asked for behind the handshake */
};

/* All 0: nobody looks. */
union record_watch {
	struct {
		u16 rest;	 /* bytes from the end of the last read to the next record */
		u16 last;	 /* length of the record before, if it may be a request; else see
				    socket_settings.bpf.h */
		u16 behind;	 /* bytes behind Finished; WATCH_PROOF: length of the record before */
		u8 run : 4;	 /* records alike; those behind Finished */
		u8 messages : 4; /* records before Finished */
		u8 flags;
	};
	struct { /* a flight that brought a request, once something has been sent */
		u32 first_send;
		bool unfinished; /* that was no reply yet */
		bool counted;
		bool alone; /* that was a single record, as long as a ticket may be */
		bool early; /* early data was answered when it had ended, and Finished is still to come */
	};
	u64 all;
};

static __always_inline bool is_finished(u8 type, u32 length)
{
	if (type == TLS_HANDSHAKE)
		return length <= FINISHED_TLS12_MOST;
	return length == FINISHED_SHA256 || length == FINISHED_SHA384 || length == FINISHED_CCM_8 ||
	       length == FINISHED_SHA384_PADDED;
}

static __always_inline void note_record_of_flight(union record_watch *watch, u8 type, u32 length)
{
	if (type == TLS_CHANGE_CIPHER_SPEC) {
		/* Finished follows it: under TLS 1.2 what came before, in the clear, may be as short. */
		watch->flags &= ~WATCH_FINISHED;
	} else if (type == TLS_HANDSHAKE) {
		/* Under TLS 1.2, where a certificate's proof follows a key exchange as short. */
		if (is_finished(type, length))
			watch->flags |= WATCH_FINISHED;
	} else if (watch->flags & WATCH_FINISHED) {
		u32 behind = watch->behind + TLS_RECORD_HEADER + length;

		if (type == TLS_ALERT_RECORD)
			return;
		if (watch->flags & WATCH_TICKETS && !watch->run && length >= TICKET_RECORD_LEAST)
			return;
		watch->behind = behind > 0xffff ? 0xffff : behind;
		if (watch->run < RECORDS_BEHIND_MOST)
			watch->run++;
	} else if (is_finished(type, length)) {
		watch->flags |= WATCH_FINISHED;
	} else if (type == TLS_APPLICATION_DATA && length == END_OF_EARLY_DATA) {
		watch->flags |= WATCH_EARLY_END;
	} else if (type == TLS_APPLICATION_DATA && watch->messages < 15) {
		watch->messages++;
	}
}

static __always_inline void note_record_of_request(union record_watch *watch, u8 type, u32 length)
{
	u32 before = watch->last;

	if (type != TLS_APPLICATION_DATA || watch->run >= RECORDS_OF_SEVERAL)
		return;
	if (length > SHORT_REQUEST_RECORD || length <= RECORD_OVERHEAD) {
		watch->run = 0;
		watch->last = 0;
		return;
	}
	length -= RECORD_OVERHEAD;
	watch->run = before && length <= 2 * before && before <= 2 * length ? watch->run + 1 : 1;
	watch->last = length;
}

/*
 * A server of TLS 1.3 may ask for a client's certificate behind the handshake, when it has read a request
 * (RFC 8446, 4.6.2). The client sends Certificate, CertificateVerify and Finished, or Certificate without one
 * in it and Finished. They are told by their lengths: of a signature (Ed25519 and ECDSA up to P-384, Ed448,
 * P-521, RSA), with header (4), algorithm (2), length (2), type and tag (17); of a Certificate that has
 * nothing but the 32 bytes by which OpenSSL knows its question again.
 */
#define VERIFY_OVERHEAD 25
#define NO_CERTIFICATE_RECORD 57

static __always_inline bool is_signature(u32 bytes)
{
	return (bytes >= 64 && bytes <= 104) || bytes == 114 || (bytes >= 136 && bytes <= 139) ||
	       bytes == 128 || bytes == 256 || bytes == 384 || bytes == 512;
}

static __always_inline void note_record_of_proof(union record_watch *watch, u8 type, u32 length)
{
	bool proven = false;

	if (type == TLS_APPLICATION_DATA && is_finished(type, length)) {
		if (watch->messages == 2)
			proven = is_signature(watch->behind - VERIFY_OVERHEAD);
		else
			proven = watch->messages == 1 && watch->behind == NO_CERTIFICATE_RECORD;
	}
	if (proven)
		watch->flags |= WATCH_FINISHED;
	else
		watch->flags &= ~WATCH_FINISHED;
	watch->behind = length;
	if (watch->messages < RECORDS_BEHIND_MOST)
		watch->messages++;
}

/* A global function, of plain numbers: the verifier works through it once a program, not once a record. */
__noinline u64 note_record(u64 before, u32 type, u32 length)
{
	union record_watch watch = {.all = before};

	if (watch.flags & WATCH_FLIGHT) {
		note_record_of_flight(&watch, type, length);
		return watch.all;
	}
	if (watch.flags & WATCH_PROOF)
		note_record_of_proof(&watch, type, length);
	if (watch.flags & WATCH_REQUESTS)
		note_record_of_request(&watch, type, length);
	return watch.all;
}

/*
 * Goes on with what the running call has read. A global function, of plain numbers: verified once a program,
 * also by Linux 5.10.
 */
__noinline u64 follow_records(u64 before, u32 bytes)
{
	union record_watch watch = {.all = before};
	u32 offset = watch.rest;

	if (offset == RECORDS_LOST)
		goto lost;
	for (u32 i = 0; i < RECORDS_PER_READ && offset < bytes; i++) {
		u32 record;

		if (bytes - offset < TLS_RECORD_HEADER)
			goto lost;
		record = record_header(offset);
		if ((u8)record < TLS_CHANGE_CIPHER_SPEC || (u8)record > TLS_APPLICATION_DATA)
			goto lost;
		watch.all = note_record(watch.all, (u8)record, record >> 8);
		offset += TLS_RECORD_HEADER + (record >> 8);
	}
	if (offset < bytes)
		goto lost;
	watch.rest = offset - bytes;
	return watch.all;
lost:
	watch.rest = RECORDS_LOST;
	return watch.all;
}

/* The first one begins at `offset` of what is being read. */
static __always_inline void watch_records(struct socket_state *st, u8 flags, u16 offset)
{
	union record_watch watch = {.rest = offset, .flags = flags};

	st->records = watch.all;
}

static __always_inline bool records_were_followed(const union record_watch *watch)
{
	return watch->flags && watch->rest != RECORDS_LOST;
}

/* Is all that was followed a client's certificate that was asked for behind the handshake? */
static __always_inline bool is_proof(const struct socket_state *st)
{
	const union record_watch watch = {.all = st->records};

	return watch.flags & WATCH_PROOF && watch.flags & WATCH_FINISHED && !watch.rest;
}

/*
 * Under TLS 1.2: has what the running call has read or sent data of the application behind messages of a
 * handshake? A global function, too.
 */
__noinline u32 has_data_behind_handshake(u32 bytes)
{
	union record_watch watch = {.flags = WATCH_FLIGHT};

	watch.all = follow_records(watch.all, bytes);
	return watch.messages || watch.run;
}

/* What came at another time came not at once. */
static __always_inline void end_run_of_records(struct socket_state *st)
{
	union record_watch watch = {.all = st->records};

	if (!(watch.flags & WATCH_REQUESTS) || watch.run >= RECORDS_OF_SEVERAL)
		return;
	watch.run = 0;
	watch.last = 0;
	st->records = watch.all;
}
