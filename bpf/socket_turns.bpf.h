/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Turns on server sockets. */
#pragma once

#include "socket_alpn.bpf.h"
#include "socket_anatomy.bpf.h"
#include "socket_arrival.bpf.h"
#include "socket_brokers.bpf.h"
#include "socket_connections.bpf.h"
#include "socket_fastcgi.bpf.h"
#include "socket_first_byte.bpf.h"
#include "socket_handshake.bpf.h"
#include "socket_http2.bpf.h"
#include "socket_interim.bpf.h"
#include "socket_late_sends.bpf.h"
#include "socket_life_signs.bpf.h"
#include "socket_node.bpf.h"
#include "socket_parting.bpf.h"
#include "socket_peers.bpf.h"
#include "socket_pipelining.bpf.h"
#include "socket_replication.bpf.h"
#include "socket_replies.bpf.h"
#include "socket_settings.bpf.h"
#include "socket_state.bpf.h"
#include "socket_streams.bpf.h"
#include "socket_waiters.bpf.h"

/* The turn is answered, beginning at `first`. */
static __always_inline void observe_turn(struct socket_state *st, struct socket_shard *shard, u64 first)
{
	st->first_reply = first;
	observe_answer(st, shard, first, false);
}

/* It was answered as a goodbye would be, but the connection goes on; or like a handshake, but more was sent.
 */
static __always_inline void observe_held_turn(struct socket_state *st, struct socket_shard *shard, u64 first)
{
	add(&shard->opened, 1);
	observe_turn(st, shard, first);
}

static __always_inline void open_turn(struct socket_state *st, struct socket_shard *shard, struct sock *sk,
				      const struct tcp_sock *tp, u64 arrival, u64 now, u32 bytes)
{
	/* Data that came together with the request before was timed when that was read. */
	if (!arrival)
		arrival = st->last_ready ? st->last_ready : now;
	st->first_arrival = arrival;
	st->turn_arrival = arrival;
	st->turn_read = now;
	st->turn_bytes = 0;
	await_first_byte(st, sk, tp);
	look_for_request(st);
	st->may_be = may_echo_sign(st, bytes) ? DOUBT_ECHO : 0;
	st->counted_late = st->oneway_run >= ONE_WAY_RUN || is_streaming(st) || st->may_be;
	note_greeting(st, bytes);
	begin_handshake_turn(st, tp, bytes);
	st->turn++;
	sample_turn(st, shard, now, bytes);
	if (!is_counted_late(st))
		add(&shard->opened, 1);
	if (st->established) {
		observe(&shard->accept_wait, elapsed(st->established, now));
		st->established = 0;
	}
}

/*
 * More was read in an open turn: does another one begin with it? One does where the reply to the open one is
 * being sent, by another thread, whose hook is still to run. Then that turn is kept for that hook. And one
 * does where nothing came for long after all had been read, and nothing was sent: what was read then was a
 * message that gets no reply. All else is more of the same request.
 */
static __always_inline bool begins_another(struct socket_state *st, struct socket_shard *shard,
					   const struct tcp_sock *tp, u64 arrival, u64 last_read, u32 bytes)
{
	u8 may_be = st->may_be;

	if (is_being_answered(st, tp)) {
		if (has_late_turn(st) || may_be_no_request(st))
			return false;
		if (was_forgotten(st))
			add(&shard->opened, 1);
		count_look(st, shard);
		st->late_turn = st->turn;
		st->late_arrival = st->turn_arrival;
		st->late_read = last_read;
		return true;
	}
	if (!arrival || arrival == st->turn_arrival)
		return false;
	if (is_whole_flight(st)) {
		end_handshake(st);
		return true;
	}
	/* More comes behind what was taken for a goodbye. */
	st->may_be &= ~(DOUBT_PARTING | DOUBT_MESSAGE);
	if (!(may_be & DOUBT_MESSAGE)) {
		if (may_part(st, arrival, last_read, bytes) ||
		    elapsed(last_read, arrival) < ONE_WAY_PAUSE_NS || st->noted & NOTED_INTERIM)
			return false;
		if (is_echo(st, st->sent_bytes, elapsed(last_read, arrival)))
			return true;
	}
	end_one_way(st, shard);
	return true;
}

/* The connection turns out to be HTTP/2: what was read before the preface is no request (a proxy's header).
 */
static __always_inline void drop_turn(struct socket_state *st, struct socket_shard *shard)
{
	if (!is_open(st))
		return;
	if (!is_counted_late(st) && !was_forgotten(st))
		add(&shard->dismissed, 1);
	st->ended = st->turn;
	release_reader(st);
}

/*
 * Is what a server sends its settings, before it has read all of the client's preface (nginx behind a proxy)?
 * What it has read so far, a proxy's header or the beginning of the preface, is no request then.
 */
static __always_inline bool settles_first(const struct socket_state *st, u32 bytes)
{
	if (st->http2 < HTTP2_AUTO || st->turns != 1)
		return false;
	if (st->tls != TLS_PROXIED && !st->preface && (st->tls != TLS_NONE || !is_proxy_opening(st->opening)))
		return false;
	return http2_sends_settings(bytes);
}

static __always_inline void server_received(struct socket_state *st, struct socket_shard *shard,
					    struct sock *sk, const struct tcp_sock *tp, u64 now, u32 bytes)
{
	u64 arrival = awaited_arrival(st, sk, tp, now);
	u64 last_read = st->last_read;
	u32 turn = st->turn;

	st->overlap = false;
	if (is_open(st) && !begins_another(st, shard, tp, arrival, last_read, bytes)) {
		if (arrival && arrival != st->turn_arrival && !(st->may_be & DOUBT_PARTING)) {
			st->turn_arrival = arrival;
			st->turn_read = now;
			end_run_of_records(st);
		}
		continue_handshake_turn(st, bytes);
		compare_read(st, bytes, arrival);
	} else if (can_answer(sk)) {
		end_doubt(st, shard);
		if (is_held(st))
			observe_held_turn(st, shard, st->first_reply);
		else if (got_tickets(st))
			st->first_reply = 0;
		finish_reply(st, shard, false);
		if (is_replica(st, bytes) || is_end_of_request(arrival, bytes))
			return;
		open_turn(st, shard, sk, tp, arrival, now, bytes);
	} else {
		return;
	}
	gather_opening(st, bytes);
	if (!(st->may_be & DOUBT_PARTING)) {
		note_read(st, now, turn != st->turn, is_counted_late(st));
		st->last_read = now;
		st->turn_bytes += bytes;
	}
	st->read_bytes = bytes;
	if (st->records)
		st->records = follow_records(st->records, bytes);
}

/*
 * Is what a server sends on a connection of which nothing else is known the beginning of its part of a
 * handshake? The hello was read before tacho came, or its beginning was, then; the client's last flight is
 * what comes next.
 */
static __always_inline void find_unseen_hello(struct socket_state *st, struct socket_shard *shard)
{
	bool open = is_open(st);

	if (st->tls != TLS_NONE || st->turns > open || !sends_server_hello())
		return;
	if (open && !is_counted_late(st) && !was_forgotten(st))
		add(&shard->dismissed, 1);
	st->tls = TLS_HELLO;
	st->turns = 1;
}

static __always_inline void server_sent(struct socket_state *st, struct socket_shard *shard, struct sock *sk,
					const struct tcp_sock *tp, u64 now, u32 bytes)
{
	u64 last_send = st->last_send, first;
	u32 turn = st->turn, before = st->sent_bytes;

	st->last_send = now;
	st->sent_bytes = bytes;
	st->gave_sign = false;
	find_unseen_hello(st, shard);
	if (st->tls == TLS_HELLO) {
		watch_protocol(st, bytes);
		st->ticketed = ends_with_ticket(bytes);
	} else {
		note_server_settings(st, bytes);
		note_first_frames(st, bytes, true);
	}
	if (turn == st->ended) {
		if (st->tls == TLS_LAST) {
			st->tls = TLS_CONNECTED;
			observe_held_turn(st, shard, st->first_reply);
		} else if (answers_early_data(st)) {
			observe_held_turn(st, shard, now);
		} else if (got_tickets(st) && brought_tickets(st) && may_say_goodbye(st, tp, bytes)) {
			st->tls = TLS_LAST;
			st->records = 0;
		} else if ((st->tls == TLS_ASKED || st->tls == TLS_TICKET) &&
			   replies_behind_flight(st, bytes, now)) {
			observe_held_turn(st, shard, st->first_reply);
		}
		continue_reply(st, shard, sk, tp, last_send, now, before, bytes);
		note_sign(st, last_send, now, bytes);
		return;
	}
	if (!has_late_turn(st))
		st->late_read = 0;
	if (is_late_send(st, tp, bytes)) {
		observe_late_turn(st, shard, 0, now);
		return;
	}
	if (st->may_be & DOUBT_PARTING)
		answer_parting(st, shard, sk, bytes);
	if (only_settles(st, shard, bytes) || only_ends_handshake(st, shard, bytes) ||
	    only_brings_tickets(st, shard, bytes)) {
		await_first_byte(st, sk, tp);
		return;
	}
	if (is_interim_response(st, bytes)) {
		await_first_byte(st, sk, tp);
		return;
	}
	if (settles_first(st, bytes)) {
		drop_turn(st, shard);
		return;
	}
	first = first_byte_time(st, sk, tp, now, bytes);
	if (is_unix_stream(st))
		note_room(st, sk, bytes);
	st->ended = turn;
	release_reader(st);
	if (st->late_read)
		observe_late_turn(st, shard, turn, now);
	if (is_echo(st, before, elapsed(st->turn_arrival, first)) ||
	    (st->turns == WEBSOCKET_TURNS && only_acknowledges(st, bytes))) {
		st->pushes = 0;
		st->spoken = false;
		note_sign(st, last_send, now, bytes);
		return;
	}
	if (answers_nothing(st, last_send, now) || (speaks_to_broker(st) && only_acknowledges(st, bytes))) {
		count_one_way(st, shard);
		note_push_gap(st, elapsed(last_send, now));
		return;
	}
	if (is_sampled(st))
		st->alternates = !is_waited_for(sk);
	if (was_forgotten(st)) {
		add(&shard->opened, 1);
		st->alternates = false;
	}
	st->oneway_run = 0;
	if (st->tls == TLS_CONNECTED && may_say_goodbye(st, tp, bytes)) {
		hold_last_turn(st, shard, first);
		return;
	}
	if (is_proof(st)) {
		st->records = 0;
		if (!is_counted_late(st))
			add(&shard->dismissed, 1);
		add(&shard->handshakes, 1);
		return;
	}
	if (only_acknowledges_settings(st)) {
		st->records = 0;
		count_one_way(st, shard);
		return;
	}
	if (st->tls == TLS_FLIGHT && may_say_goodbye(st, tp, bytes) && flight_brings_request(st, bytes)) {
		hold_first_turn(st, shard, first);
		return;
	}
	if (is_counted_late(st)) {
		bool handshake = in_handshake(st), request = end_special_turn(st, bytes);

		/* A client under TLS 1.3 may ask right behind its last flight, without waiting. */
		if (handshake)
			st->overlap = false;
		/* A reset may have come meanwhile, which has ended the connection. */
		if (st->tls == TLS_TICKET && !st->counted && !st->close_unseen) {
			st->tls = TLS_CONNECTED;
			request = true;
		} else if (st->tls == TLS_TICKET) {
			st->first_reply = first;
			return;
		}
		if (!request) {
			if (handshake)
				add(&shard->handshakes, 1);
			else if (st->tls == TLS_HELD)
				st->first_reply = first;
			return;
		}
		end_doubt(st, shard);
		add(&shard->opened, 1);
	}
	if (st->records && st->tls != TLS_ASKED)
		count_records(st, shard);
	count_looked(st, shard);
	observe_turn(st, shard, first);
	note_answer(st, shard, sk, first, now, bytes);
	if ((st->overlap && !has_only_parted(st, tp)) || st->many) {
		add(&shard->overlapped_turns, 1);
		st->overlap = false;
		if (!st->multiplexed)
			add(&shard->multiplexed_connections, 1);
		st->multiplexed = true;
	}
}
