/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Which streams of an HTTP/2 connection are open, and what their frames do to them (socket_http2.bpf.h). */
#pragma once

#include "socket_http2_state.bpf.h"

#if MAY_LOOP

/* A slot that is looked for, with the stream `id`; 0: a free one. */
struct http2_search {
	struct http2_state *h2;
	u32 id;
	u32 slot;
};

/* One step of bpf_loop; 1 ends it. */
static long http2_look(u32 step, struct http2_search *search)
{
	u32 slot = search->slot + HTTP2_STRIDE;

	if (slot >= HTTP2_STREAMS)
		slot -= HTTP2_STREAMS;
	search->slot = slot;
	/* Also if it began beyond. */
	return slot >= HTTP2_STREAMS || search->h2->streams[slot].id == search->id;
}

/*
 * The slot of an open stream, or, for one that begins, where it may be: in its own slot, or in another where
 * a stream was that began earlier and was open still. HTTP2_STREAMS: none.
 */
static __always_inline u32 http2_find(struct http2_state *h2, u32 id, bool begins)
{
	struct http2_search search = {.h2 = h2, .id = begins ? 0 : id, .slot = http2_slot(id)};
	u32 slot = search.slot;
	long steps;

	if (h2->streams[slot].id == search.id)
		return slot;
	if ((!begins && !h2->displaced) || !can_follow_http2())
		return HTTP2_STREAMS;
	steps = bpf_loop(begins ? HTTP2_STREAMS - 1 : h2->reach, http2_look, &search, 0);
	slot = search.slot;
	barrier_var(slot);
	if (slot >= HTTP2_STREAMS || h2->streams[slot].id != search.id)
		return HTTP2_STREAMS;
	if (begins && (!h2->displaced || h2->reach < steps))
		h2->reach = steps;
	return slot;
}

/*
 * More of a request was read: it arrives with the last data that the server had to wait for, as others do.
 * What lay there already has not kept it waiting.
 */
static __always_inline void http2_more_came(const struct http2_state *h2, struct http2_stream *stream,
					    u64 arrival, u64 now)
{
	if (!h2->awaited)
		return;
	stream->arrival = arrival;
	stream->read = now;
}

/* The rest of a DATA frame is being read. A global function: verified once a program. */
__noinline int http2_body_goes_on(struct http2_state *h2, u64 arrival, u64 now)
{
	u32 slot;

	if (!h2)
		return 0;
	slot = http2_find(h2, h2->body, false);
	barrier_var(slot);
	/* Else its reply has begun. */
	if (slot < HTTP2_STREAMS)
		http2_more_came(h2, &h2->streams[slot], arrival, now);
	return 0;
}

/*
 * Is what the server sends an interim response (RFC 9113, 8.1; 1xx)? A status is the first of the fields
 * (8.3), here as HPACK has it (RFC 7541): a literal by one of the seven names in the static table, in plain
 * letters or in the code of Huffman, where "1" is 00001; or a reference to such a literal of before, in the
 * dynamic table. What stands there is not followed: on a connection that has had an interim response it may
 * be one, until data follows.
 */
static __always_inline bool http2_is_interim(struct http2_state *h2, const struct http2_cursor *cursor)
{
	u8 first = cursor->fields[0], name = first & 0xf, length = cursor->fields[1];

	if (cursor->header[4] & (HTTP2_END_STREAM | HTTP2_PADDED | HTTP2_PRIORITISED))
		return false;
	if (first >= HPACK_DYNAMIC)
		return h2->interim;
	if ((first & 0xf0) != HPACK_INDEXED_LATER && first & 0xe0)
		return false;
	if (name < HPACK_STATUS || name >= HPACK_STATUS + HPACK_STATUSES)
		return false;
	if (!(length == 3 && cursor->fields[2] == '1') &&
	    !(length == (HPACK_HUFFMAN | 2) && cursor->fields[2] >> 3 == 1))
		return false;
	h2->interim = true;
	return true;
}

/* A frame's header is complete. False if it cannot be one. A global function, too. */
__noinline int http2_frame(struct http2_state *h2, struct socket_shard *shard, u64 arrival, u64 now,
			   u64 direction)
{
	struct http2_stream *stream;
	struct http2_cursor *cursor;
	u32 id, type, slot;
	bool body, replies;

	/* One register for the bound and the use of it, as in http2_follow(). */
	barrier_var(direction);
	if (!h2 || !shard || direction >= TACHO_DIRECTIONS)
		return false;
	cursor = &h2->cursor[direction];
	if (!http2_is_header(cursor->header))
		return false;
	id = http2_stream_id(cursor->header);
	type = cursor->header[3];
	cursor->skip = http2_length(cursor->header);
	body = type == HTTP2_DATA && direction == TACHO_RECEIVE;
	if (direction == TACHO_RECEIVE)
		h2->body = body ? id : 0;
	/* Behind what was taken for an interim response: it was none, or there is no other. */
	replies = type == HTTP2_DATA && direction == TACHO_SEND && h2->interim;
	/* Streams of the client are odd (RFC 9113, 5.1.1). */
	if (!(id & 1) || (type != HTTP2_HEADERS && type != HTTP2_RST_STREAM && !body && !replies))
		return true;
	if (type == HTTP2_HEADERS && direction == TACHO_SEND && http2_is_interim(h2, cursor))
		return true;
	if (body || type == HTTP2_RST_STREAM || direction == TACHO_SEND) {
		slot = http2_find(h2, id, false);
		barrier_var(slot);
		/* Another HEADERS frame on the stream brings the trailers. */
		if (slot >= HTTP2_STREAMS)
			return true;
		stream = &h2->streams[slot];
		if (body) {
			http2_more_came(h2, stream, arrival, now);
			return true;
		}
		if (type == HTTP2_RST_STREAM) {
			add(&shard->unanswered, 1);
		} else {
			u64 received = elapsed(stream->begun, stream->arrival);

			observe(&shard->queue, elapsed(stream->arrival, stream->read));
			observe(&shard->service, elapsed(stream->read, now));
			observe(&shard->duration, elapsed(stream->arrival, now));
			if (received)
				observe(&shard->receive, received);
		}
		http2_end(h2, slot, shard);
	} else if (id > h2->last_stream) {
		h2->last_stream = id;
		slot = http2_find(h2, id, true);
		barrier_var(slot);
		/* A reply that is still owed will not be distinguished from others. */
		if (slot >= HTTP2_STREAMS) {
			slot = http2_slot(id);
			http2_end(h2, slot, shard);
			add(&shard->unanswered, 1);
			count_loss(TACHO_LOST_HTTP2_STREAM);
		} else if (slot != http2_slot(id)) {
			__sync_fetch_and_add(&h2->displaced, 1);
		}
		__sync_fetch_and_add(&h2->open, 1);
		stream = &h2->streams[slot];
		stream->begun = stream->arrival = arrival;
		stream->read = now;
		stream->id = id;
		if (!h2->counted_late)
			add(&shard->opened, 1);
	}
	return true;
}

#endif
