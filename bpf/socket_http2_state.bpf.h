/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* What is kept of a connection whose requests are counted by the frames of HTTP/2 (socket_http2.bpf.h). */
#pragma once

#include "socket_http2_frames.bpf.h"

/* Streams open at a time, as many as a block of 8 KiB has room for. Servers allow 100 to 250 by default. */
#define HTTP2_STREAMS 240
/* From a slot to the next that is looked at: all are reached, and streams that are opened in a row lie apart.
 */
#define HTTP2_STRIDE 37
/* Of one operation, each a header, what is between two, or the next part of a vector. */
#define HTTP2_STEPS (1 << 16)
/* Operations (reads, where only the preface is looked for) until a connection is taken for HTTP/1. */
#define HTTP2_TRIES 4
/* Reads of a connection that is older than tacho in which a request is looked for. */
#define HTTP2_OLDER_TRIES 16

enum http2_follow {
	HTTP2_OFF,
	HTTP2_TRY,			       /* and up to HTTP2_TRY + HTTP2_TRIES - 1 */
	HTTP2_ON = HTTP2_TRY + HTTP2_TRIES,    /* frames count, turns do not */
	HTTP2_AUTO,			       /* and up to HTTP2_AUTO + HTTP2_TRIES - 1: only the preface */
	HTTP2_SHED = HTTP2_AUTO + HTTP2_TRIES, /* it is HTTP/2, but turns count (TACHO_SHED_STREAMS) */
	HTTP2_OLDER, /* and up to HTTP2_OLDER + HTTP2_OLDER_TRIES - 1: the preface, or a request that is no
			accident */
};

/* A stream whose reply has not begun. */
struct http2_stream {
	u64 begun;   /* its first data arrived */
	u64 arrival; /* the last that the server had to wait for did */
	u64 read;
	u32 id; /* 0: the slot is free */
};

struct http2_state {
	struct http2_cursor cursor[TACHO_DIRECTIONS];
	u32 last_stream; /* the highest that the client has opened */
	u32 open;	 /* streams in use; one thread may read while another one writes */
	u32 displaced;	 /* of these, in another slot than http2_slot() says, at most `reach` steps from it */
	u32 reach;
	u32 body;	   /* the stream of the client's frame that is being read, if that is DATA; else 0 */
	bool awaited;	   /* the server has waited for what it reads */
	bool interim;	   /* an interim response was sent: others may be by the dynamic table */
	bool counted_late; /* they count when they end: nothing tells the connection's end (unix sockets) */
	struct http2_stream streams[HTTP2_STREAMS];
};

/* Where a stream is, unless one that began earlier is there still. */
static __always_inline u32 http2_slot(u32 id)
{
	u32 slot = (id >> 1) % HTTP2_STREAMS;

	/* Of a remainder the verifier does not know that it is less. */
	barrier_var(slot);
	return slot < HTTP2_STREAMS ? slot : 0;
}

/* The stream's reply begins, or it will have none. */
static __always_inline void http2_end(struct http2_state *h2, u32 slot, struct socket_shard *shard)
{
	struct http2_stream *stream = &h2->streams[slot];

	if (slot != http2_slot(stream->id))
		__sync_fetch_and_add(&h2->displaced, -1);
	stream->id = 0;
	__sync_fetch_and_add(&h2->open, -1);
	if (h2->counted_late)
		add(&shard->opened, 1);
}

#if MAY_LOOP

static __always_inline bool can_follow_http2(void)
{
	return bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_loop);
}

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct http2_state);
} http2_states SEC(".maps");

/* Tried twice, as a socket's state is. */
static __always_inline struct http2_state *new_http2_state(struct sock *sk)
{
	struct http2_state *h2 = bpf_sk_storage_get(&http2_states, sk, NULL, BPF_SK_STORAGE_GET_F_CREATE);

	return h2 ? h2 : bpf_sk_storage_get(&http2_states, sk, NULL, BPF_SK_STORAGE_GET_F_CREATE);
}

/*
 * The streams that are open are requests no longer. An operation that goes on meanwhile on another CPU may
 * still open or end some: they are made up for when this is done again, a negative number of them, too.
 */
static __always_inline void drop_streams(struct http2_state *h2, struct socket_shard *shard)
{
	u32 open = exchange_u32(&h2->open, 0);

	if (!h2->counted_late)
		add(&shard->dismissed, (s64)(s32)open);
}

/*
 * Follows the frames of a connection for which turns counted. It begins anew: which streams are open is not
 * known, nor where a frame begins.
 */
static __always_inline struct http2_state *resume_http2(struct socket_state *st, struct sock *sk,
							struct socket_shard *shard)
{
	struct http2_state *h2 = bpf_sk_storage_get(&http2_states, sk, NULL, 0);

	if (h2) {
		drop_streams(h2, shard);
		bpf_sk_storage_delete(&http2_states, sk);
	}
	h2 = new_http2_state(sk);
	if (h2) {
		st->http2 = HTTP2_ON;
		h2->counted_late = st->close_unseen;
	} else {
		count_loss(TACHO_LOST_SOCKET_STATE);
	}
	return h2;
}

/* Turns count from now on. */
static __always_inline void shed_http2(struct socket_state *st, struct http2_state *h2,
				       struct socket_shard *shard)
{
	st->http2 = HTTP2_SHED;
	drop_streams(h2, shard);
}

#endif
