/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Requests of cleartext HTTP/2 (gRPC inside a mesh).
 *
 * One connection carries many requests at a time, so turns do not count them. The nine bytes in front of
 * every frame do (RFC 9113, 4.1): a request begins with the first HEADERS frame of a stream that the client
 * opened, and its reply with the first HEADERS frame that goes back on it and is no interim response. Only
 * these nine bytes are looked at, and the three behind them that have the status, in the buffers of the
 * system call that has sent or received them; what is between is skipped by its length, never read.
 *
 * A connection is followed from its preface, with which it begins or goes on after an upgrade from HTTP/1.1
 * (RFC 7540, 3.2): the first reads of a connection are looked at for these 24 bytes. A connection that is
 * older than tacho is followed from the first read that begins with a request beyond doubt, or, where a
 * target says `http2: true`, from the first operation that begins like a frame; whatever does not look like
 * one any more makes us look anew, and is counted. Buffers of io_uring are not found: there turns count.
 */
#pragma once

#include "socket_http2_streams.bpf.h"

#if !MAY_LOOP

static __always_inline bool can_follow_http2(void)
{
	return false;
}

/* Kernels that have no bpf_loop (5.17), or programs that cannot use it: turns count. */
static __always_inline bool http2_operation(struct socket_state *st, struct sock *sk,
					    struct socket_shard *shard, u64 now, u32 bytes, u32 direction)
{
	return false;
}

static __always_inline void http2_closed(struct socket_state *st, struct sock *sk,
					 struct socket_shard *shared, bool handed_over)
{
}

#else

/* What one operation has transferred: a vector of user space, followed part by part. */
struct http2_walk {
	struct http2_state *h2;
	struct socket_shard *shard;
	const void *vector; /* the parts behind the current one */
	const void *part;
	u64 part_bytes;
	u32 parts;
	u32 bytes; /* left of the operation */
	u32 direction;
	u64 arrival;
	u64 now;
};

/*
 * What follows a header whose last `bytes` the current part begins with. It may stand in the next part
 * (Netty's buffers). A function of its own, for the stack of the one that calls it.
 */
static __noinline int http2_read_fields(struct http2_walk *walk, u64 bytes)
{
	u64 length = walk->part_bytes - bytes, rest = walk->bytes - bytes;
	u8 *fields = walk->h2->cursor[TACHO_SEND].fields;
	const void *at = walk->part + bytes;
	u64 part[2]; /* struct iovec */

	__builtin_memset(fields, 0, sizeof(walk->h2->cursor[TACHO_SEND].fields));
	if (!length && walk->parts && !bpf_probe_read_user(part, sizeof(part), walk->vector)) {
		at = (const void *)part[0];
		length = part[1];
	}
	if (length > rest)
		length = rest;
	if (length > HTTP2_FIELDS_BYTES)
		length = HTTP2_FIELDS_BYTES;
	barrier_var(length);
	length &= HTTP2_FIELDS_BYTES;
	return bpf_probe_read_user(fields, length, at);
}

/* Skips, or reads the next bytes of a header, or goes to the next part. One step of bpf_loop; 1 ends it. */
static long http2_step(u32 step, struct http2_walk *walk)
{
	struct http2_cursor *cursor;
	u64 part[2]; /* struct iovec */
	u32 bytes;

	if (!walk->bytes || walk->direction >= TACHO_DIRECTIONS)
		return 1;
	cursor = &walk->h2->cursor[walk->direction];
	if (!walk->part_bytes) {
		if (!walk->parts || bpf_probe_read_user(part, sizeof(part), walk->vector)) {
			/* More than we follow, or not in buffers (sendfile): lengths say what is missing. */
			if (cursor->skip >= walk->bytes) {
				cursor->skip -= walk->bytes;
			} else {
				cursor->in_step = false;
				count_loss(TACHO_LOST_HTTP2_STEP);
			}
			return 1;
		}
		walk->parts--;
		walk->vector += sizeof(part);
		walk->part = (const void *)part[0];
		walk->part_bytes = part[1];
		return 0;
	}
	bytes = walk->bytes < walk->part_bytes ? walk->bytes : walk->part_bytes;
	if (cursor->skip) {
		if (bytes > cursor->skip)
			bytes = cursor->skip;
		cursor->skip -= bytes;
	} else {
		u32 have = cursor->have & 15;
		u32 want = HTTP2_HEADER - have;
		u64 length;

		if (have >= HTTP2_HEADER)
			return 1;
		if (bytes > want)
			bytes = want;
		length = bytes;
		/* Verifiers up to 6.1 need the bound on the very register. */
		barrier_var(length);
		length &= 15;
		if (bpf_probe_read_user(&cursor->header[have], length, walk->part)) {
			cursor->in_step = false;
			count_loss(TACHO_LOST_HTTP2_STEP);
			return 1;
		}
		cursor->have = have + bytes;
		if (cursor->have == HTTP2_HEADER) {
			cursor->have = 0;
			if (walk->direction == TACHO_SEND && cursor->header[3] == HTTP2_HEADERS)
				http2_read_fields(walk, bytes);
			if (!http2_frame(walk->h2, walk->shard, walk->arrival, walk->now, walk->direction)) {
				cursor->in_step = false;
				count_loss(TACHO_LOST_HTTP2_STEP);
				return 1;
			}
		}
	}
	walk->part += bytes;
	walk->part_bytes -= bytes;
	walk->bytes -= bytes;
	return 0;
}

/* Finds the buffers of the running call; without them only lengths are known. */
static __always_inline void http2_buffers(struct http2_walk *walk)
{
	struct call_buffers buffers;

	walk->part = NULL;
	walk->part_bytes = 0;
	walk->parts = 0;
	walk->vector = NULL;
	if (!find_call_buffers(&buffers))
		return;
	if (buffers.single) {
		walk->part = buffers.single;
		walk->part_bytes = walk->bytes;
		return;
	}
	walk->vector = buffers.vector;
	walk->parts = buffers.parts;
}

/* The state of a connection that may speak HTTP/2; NULL if it does not, as far as is known. */
static __always_inline struct http2_state *
http2_state_of(struct socket_state *st, struct sock *sk, struct socket_shard *shard, u32 bytes, u32 direction)
{
	struct http2_state *h2;
	u32 begins;

	if (st->http2 == HTTP2_ON)
		return bpf_sk_storage_get(&http2_states, sk, NULL, 0);
	if (st->http2 == HTTP2_SHED)
		return resume_http2(st, sk, shard);
	if (st->http2 < HTTP2_AUTO)
		begins = http2_beginning(st, bytes, direction);
	else if (direction != TACHO_RECEIVE)
		return NULL;
	else
		begins = http2_preface_end(st, bytes);
	if (!begins && st->http2 >= HTTP2_OLDER) {
		begins = http2_request_begins(bytes);
		if (begins == HTTP2_MAY_BE)
			return NULL;
	}
	if (begins) {
		h2 = new_http2_state(sk);
		if (h2) {
			st->http2 = HTTP2_ON;
			h2->counted_late = st->close_unseen;
			/* At the preface nothing was sent yet, but where an upgrade came before it. */
			h2->cursor[TACHO_SEND].in_step = begins > 1 && !st->last_send;
			h2->cursor[TACHO_RECEIVE].in_step = begins > 1;
			h2->cursor[TACHO_RECEIVE].skip = begins - 1;
			return h2;
		}
		count_loss(TACHO_LOST_SOCKET_STATE);
	}
	/* A server that reads the first bytes one by one has not read the preface yet, or not to its end. */
	if (bytes >= HTTP2_PREFACE_LEAST || (st->turns > 1 && !st->preface))
		st->http2++;
	if (st->http2 == HTTP2_ON || st->http2 == HTTP2_AUTO + HTTP2_TRIES ||
	    st->http2 == HTTP2_OLDER + HTTP2_OLDER_TRIES)
		st->http2 = HTTP2_OFF;
	return NULL;
}

/* Puts the cursor where the operation's first frame begins (http2_beginning()); false if none does. */
static __always_inline bool http2_fall_in(struct http2_cursor *cursor, u32 begins)
{
	if (!begins)
		return false;
	cursor->skip = begins - 1;
	cursor->have = 0;
	cursor->in_step = true;
	return true;
}

static __always_inline void http2_received(struct socket_state *st, struct http2_walk *walk)
{
	walk->h2->awaited = st->arrival;
	walk->arrival = st->arrival ? st->arrival : st->last_ready ? st->last_ready : walk->now;
	st->arrival = 0;
	if (st->established) {
		observe(&walk->shard->accept_wait, elapsed(st->established, walk->now));
		st->established = 0;
	}
}

/* Follows the frames of one operation. A global function: verified once a program. */
__noinline int http2_follow(struct http2_state *h2, struct socket_state *st, struct socket_shard *shard,
			    u64 now, u64 bytes_and_direction)
{
	u64 direction = bytes_and_direction >> 32;
	struct http2_walk walk = {.h2 = h2, .shard = shard, .bytes = bytes_and_direction, .now = now};
	struct http2_cursor *cursor;

	/* One register for bound and use: verifiers up to 6.1 do not know that copies are equal. */
	barrier_var(direction);
	if (!h2 || !st || !shard || direction >= TACHO_DIRECTIONS || !can_follow_http2())
		return 0;
	walk.direction = direction;
	if (direction == TACHO_RECEIVE)
		http2_received(st, &walk);
	cursor = &h2->cursor[direction];
	if (!cursor->in_step) {
		if (!http2_fall_in(cursor, http2_beginning(st, walk.bytes, direction)))
			return 0;
		if (direction == TACHO_RECEIVE)
			h2->body = 0;
	}
	if (direction == TACHO_RECEIVE && h2->body && cursor->skip)
		http2_body_goes_on(h2, walk.arrival, now);
	http2_buffers(&walk);
	bpf_loop(HTTP2_STEPS, http2_step, &walk, 0);
	return 0;
}

/* An operation on a server's connection that may speak HTTP/2. False if it does not: turns count. */
static __always_inline bool http2_operation(struct socket_state *st, struct sock *sk,
					    struct socket_shard *shard, u64 now, u32 bytes, u32 direction)
{
	bool shed = st->shed >= TACHO_SHED_STREAMS;
	struct http2_state *h2;

	if (!can_follow_http2() || (shed && st->http2 == HTTP2_SHED))
		return false;
	/* Also of a connection that begins now: else nobody would know later that it is HTTP/2. */
	h2 = http2_state_of(st, sk, shard, bytes, direction);
	if (!h2)
		return false;
	if (shed) {
		shed_http2(st, h2, shard);
		return false;
	}
	add(&shard->followed, 1);
	http2_follow(h2, st, shard, now, (u64)direction << 32 | bytes);
	return true;
}

/*
 * The connection is over, or goes to another target, which follows it from the next frame on. `shared`: NULL
 * if the one that it leaves is gone.
 */
static __always_inline void http2_closed(struct socket_state *st, struct sock *sk,
					 struct socket_shard *shared, bool handed_over)
{
	struct http2_state *h2;

	if (st->http2 != HTTP2_ON && st->http2 != HTTP2_SHED)
		return;
	st->http2 = handed_over ? HTTP2_TRY : HTTP2_OFF;
	h2 = bpf_sk_storage_get(&http2_states, sk, NULL, 0);
	if (!h2)
		return;
	if (shared && !h2->counted_late)
		add_atomic(&shared->unanswered, (s64)(s32)h2->open);
	bpf_sk_storage_delete(&http2_states, sk);
}

#endif
