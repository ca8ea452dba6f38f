/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Does the server choose HTTP/2 in a TLS handshake (ALPN, RFC 7301)? Then its connection carries many
 * requests at a time, and turns do not count them.
 *
 * Under TLS 1.2 the choice is in the ServerHello, in the clear. Under TLS 1.3 it is in EncryptedExtensions,
 * of which only the length is visible: the first encrypted record of the server's flight, where the server's
 * library gives each message a record of its own (OpenSSL, GnuTLS, Go do; BoringSSL, rustls and Java do not:
 * there socket_settings.bpf.h and socket_first_frames.bpf.h look at what follows).
 * With "h2" it is six bytes shorter than with "http/1.1" and nine longer than without a choice; the other
 * extensions in it (the server's name, early data) are four bytes each. With two of them it is as long as
 * with "postgresql", so that is not taken for a choice. Groups that the server likes better, which OpenSSL
 * names there, may be any length.
 */
#pragma once

#include "socket_buffers.bpf.h"
#include "socket_first_frames.bpf.h"
#include "socket_settings.bpf.h"
#include "socket_state.bpf.h"

/* ServerHello, change_cipher_spec, EncryptedExtensions; one to spare. */
#define ALPN_RECORDS 4
/* The last byte of the extension's type, lengths, "h2". */
#define ALPN_HTTP2_EXTENSION 0x1000050003026832ULL
/* A record with a message of a header (4), the length of the list (2) and ALPN (9); type (1) and tag (16). */
#define ALPN_HTTP2_RECORD 32
#define ALPN_OTHER_EXTENSION 4
#define ALPN_OTHER_EXTENSIONS 1
/* The same without a choice, and with "http/1.1". */
#define ALPN_NO_RECORD 23
#define ALPN_HTTP1_RECORD 38

static __always_inline bool is_choice(u32 length, u32 least)
{
	return length >= least && length <= least + ALPN_OTHER_EXTENSIONS * ALPN_OTHER_EXTENSION &&
	       (length - least) % ALPN_OTHER_EXTENSION == 0;
}

/*
 * The length of the first encrypted record; 0 if there is none. A ServerHello takes 1200 bytes with a key
 * share that withstands quantum computers (X25519MLKEM768).
 */
static __always_inline u32 encrypted_record(u32 bytes)
{
	u32 offset = 0;

	for (int i = 0; i < ALPN_RECORDS && offset + TLS_RECORD_HEADER <= bytes; i++) {
		u32 record = record_header(offset);

		if ((u8)record == TLS_APPLICATION_DATA)
			return record >> 8;
		if ((u8)record != TLS_CHANGE_CIPHER_SPEC && (u8)record != TLS_HANDSHAKE)
			return 0;
		offset += TLS_RECORD_HEADER + (record >> 8);
	}
	return 0;
}

/* The last byte of the extension's type, two lengths, "h2" as the first protocol. */
#define ALPN_OFFER 0x1000000000026832ULL
#define ALPN_OFFER_MASK 0xffff00ff00ffffffULL

static long compare_eight(u32 index, struct sample_scan *scan)
{
	struct search *search = &scan->sample->search;
	u64 at = index;

	barrier_var(at);
	if (at >= SAMPLE_BYTES || at >= scan->sample->length)
		return 1;
	search->window = search->window << 8 | scan->sample->bytes[at];
	search->http2 |= (search->window & ALPN_OFFER_MASK) == ALPN_OFFER;
	search->found = search->window == search->sought;
	return search->found ? 1 : 0;
}

DEFINE_LOOP(search_sample, compare_eight, struct sample_scan, find_sample)

/* Do these eight bytes, the first one as the most significant, stand in the sample? */
static __always_inline bool has_eight(struct sample *sample, u64 bytes)
{
	sample->search.sought = bytes;
	search_sample(0, SAMPLE_BYTES);
	return sample->search.found;
}

/* "http/1.1" */
#define ALPN_HTTP1_NAME 0x687474702f312e31ULL

enum { OFFERS_HTTP1 = 1, OFFERS_HTTP2 = 2 };

/*
 * Does the running call have a part of a ClientHello that offers HTTP/1.1, or HTTP/2 before all? The client
 * speaks HTTP, then. A global function: the verifier works through its loops once a program.
 */
__noinline u32 offered_protocols(u32 bytes)
{
	struct sample *sample = gather_sample(bytes);
	u32 offered;

	if (!sample)
		return 0;
	offered = has_eight(sample, ALPN_HTTP1_NAME) ? OFFERS_HTTP1 : 0;
	return sample->search.http2 ? offered | OFFERS_HTTP2 : offered;
}

static __always_inline void note_offer(struct socket_state *st, u32 bytes)
{
	u32 offered = offered_protocols(bytes);

	if (offered & OFFERS_HTTP1)
		st->http1 = true;
	if (offered & OFFERS_HTTP2)
		st->frames = FRAMES_OFFERED;
}

/* In TLS 1.2 header and tag, and with AES-GCM a nonce. */
#define RECORD_EXPANSION_TLS12 29
#define RECORD_EXPANSION_CHACHA20_TLS12 21

/* In a ServerHello: headers (5 + 4), version (2), random (32), session (its length and at most 32), suite. */
#define SESSION_LENGTH_AT 43
#define SESSION_MOST 32
/* 0xCCA8 to 0xCCAE (RFC 7905). */
#define CHACHA20_SUITES 0xcc

static __always_inline u32 expansion_of_tls12(const struct sample *sample)
{
	u32 session = sample->bytes[SESSION_LENGTH_AT];

	barrier_var(session);
	if (session > SESSION_MOST || sample->length <= SESSION_LENGTH_AT + 1 + session)
		return RECORD_EXPANSION_TLS12;
	return sample->bytes[SESSION_LENGTH_AT + 1 + session] == CHACHA20_SUITES
		   ? RECORD_EXPANSION_CHACHA20_TLS12
		   : RECORD_EXPANSION_TLS12;
}

/* It is not known what was chosen, under TLS 1.3. */
#define CHOICE_HIDDEN 0x100

/*
 * If the running send carries the choice of HTTP/2, by how much records will be longer than their data; else
 * 0. A global function: the verifier works through its loops once a program.
 */
__noinline u32 chooses_http2(u64 bytes)
{
	u32 encrypted = encrypted_record(bytes);
	struct sample *sample;

	if (is_choice(encrypted, ALPN_HTTP2_RECORD))
		return TLS13_EXPANSION;
	if (encrypted)
		return is_choice(encrypted, ALPN_NO_RECORD) || is_choice(encrypted, ALPN_HTTP1_RECORD)
			   ? 0
			   : CHOICE_HIDDEN;
	sample = gather_sample(bytes);
	return sample && has_eight(sample, ALPN_HTTP2_EXTENSION) ? expansion_of_tls12(sample) : 0;
}

/* Something is sent in a handshake. */
static __always_inline void watch_protocol(struct socket_state *st, u32 bytes)
{
	u32 choice;

	if (st->many)
		return;
	choice = chooses_http2(bytes);
	if (choice == CHOICE_HIDDEN) {
		st->settles = SETTLES_FIRST;
		if (st->frames == FRAMES_OFFERED)
			st->frames = FRAMES_HIDDEN;
	}
	st->expansion = choice;
	st->opens = st->expansion;
	st->many = st->expansion;
}
