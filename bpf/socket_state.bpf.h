/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* The maps of the socket probe, and the state that is kept of every watched socket. */
#pragma once

#include "lib/accumulate.bpf.h"
#include "lib/compat.bpf.h"
#include "lib/loss.bpf.h"
#include "lib/targets.bpf.h"
#include "socket.h"
#include "thread_record.bpf.h"

/* What a program leaves notes of, see socket_again.bpf.h. */
enum socket_event { EVENT_SEND, EVENT_RECEIVE, EVENT_DATA_READY, SOCKET_EVENTS };
/* Threads that send by one stream at the same time, or receive. */
#define NOTES_AT_ONCE 2

/*
 * What was found at the open turn. Whether it is several requests counts when it is answered: what gets no
 * reply is none.
 */
enum turn_note {
	NOTED_LOOK = 1,	   /* it was looked at, */
	NOTED_SEVERAL = 2, /* and is several requests, */
	NOTED_CROWD = 4,   /* each of which was read by itself */
	NOTED_INTERIM = 8, /* the client was told to go on (socket_interim.bpf.h) */
	NOTED_FULL = 16,   /* no room was left when something was sent last (socket_replies.bpf.h) */
};

/* What the open turn may be, or have brought. */
enum turn_doubt {
	DOUBT_ECHO = 1,	   /* it may be the echo of a sign of life (socket_life_signs.bpf.h) */
	DOUBT_PARTING = 2, /* its client may have said goodbye within it (socket_parting.bpf.h); client:
			      it has, maybe, within the open call (socket_call_parting.bpf.h) */
	DOUBT_MESSAGE = 4, /* server: or that was a message as short, after a pause */
};

/*
 * Server: a turn is open from its first read to the first send after it. Client: a call is open from its last
 * send to the first data that comes back.
 */
struct socket_state {
	/*
	 * The first 56 bytes share a cache line with the storage's header. Data arrives on the CPU that runs
	 * the network, mostly not on the server's: what both touch stands here, so that one line travels and
	 * not two.
	 */
	u64 arrival;	/* server: of the last data that was waited for, see socket_arrival.bpf.h; else
			   when the oldest unread data came. 0: none known */
	u64 last_ready; /* when data came last */
	union {
		struct {		 /* TCP server */
			u32 arrival_seq; /* where in the stream the data of `arrival` begins */
			u32 ready_seq;	 /* up to where data has come, as far as hooks have told */
		};
		u64 first_out; /* unix, MPTCP server: when the open turn's reply began to leave; 0: it has not
				*/
	};
	/*
	 * The number of the turn that began last, and of the one that ended last: open while they differ.
	 * Only reads change the one and only sends (or the connection's end) the other, so that a send's hook
	 * on one CPU and a read's on another one lose nothing.
	 */
	u32 turn;
	u32 ended;
	u32 write_seq; /* server: when the open turn began; client: up to where calls are answered */
	struct target_ref target;
	u8 role;
	bool overlap;	   /* server: data came while a turn was open, before any of its reply was sent;
			      client: several calls are open at a time */
	bool call_open;	   /* client: something was sent and nothing came back yet */
	bool many;	   /* speaks a protocol that carries many requests at a time (HTTP/2) */
	bool left;	   /* not TCP: the last read left data behind */
	bool close_unseen; /* no hook tells its end (unix sockets) */
	/* From here on only the server's CPU as a rule. */
	u8 tls;	  /* enum tls_state */
	u8 http2; /* enum http2_follow */
	bool owned_by_process;
	bool counted;	   /* in connections_opened */
	bool multiplexed;  /* in multiplexed_connections */
	u8 turns;	   /* up to TLS_TURNS */
	u8 sampler;	   /* turns or calls, modulo 256 */
	bool alternates;   /* the server does not wait for more from the client while it owes a reply */
	bool counted_late; /* the open turn is counted when it is answered, if it ever is */
	u8 oneway_run;	   /* messages without a reply since the last one that got one */
	u8 pushes;	   /* since the last turn, see socket_streams.bpf.h */
	u8 may_stream;	   /* there were many of them in a row; fades with turns */
	u8 streaming : 7;  /* turns whose replies look like pushes */
	bool spoken : 1;   /* the client has said something since the last send that got no reply */
	u8 crowded;	   /* a turn had several requests; fades with turns, see socket_pipelining.bpf.h */
	u32 push_gap;	   /* between pushes, smoothed; in units of 1024 ns */
	u32 generation;	   /* of the look-up maps when it was found */
	u64 owner;	   /* cgroup id or thread group that `target` was found by */
	/* Of the open turn. */
	union {
		u64 first_arrival;
		u64 called_before; /* datagram socket: another one, before `called` */
	};
	u64 turn_arrival; /* of the last data that the server had to wait for */
	union {
		u64 turn_read;	 /* when that was read */
		u64 interrupted; /* client: when the call was sent that a TLS handshake interrupts; 0: none */
	};
	u32 turn_bytes;	  /* client: of the open call */
	u32 busy;	  /* TCP's clock of having something to send, see socket_first_byte.bpf.h */
	u64 left_waiting; /* see socket_sweep.bpf.h */
	/* Of an earlier turn, while the hook of the send that answers it is late. */
	u32 late_turn;
	union {
		u64 late_arrival; /* or of what may be a goodbye in the open turn; client: when that was
				     sent within the open call, 0: it surely is one */
		u64 peeked;	  /* datagram socket: who has sent what was looked at last; 0: nobody */
	};
	u64 late_read; /* last read; 0: none is late */
	u64 last_read;
	u64 first_reply; /* of the turn before; 0: none */
	u64 last_send;
	u64 established; /* accepted and not yet handled by the server; 0 afterwards */
	u32 peer;	 /* client: dependency slot */
	u8 handovers;	 /* to other targets */
	bool past_tcp;	 /* see tcp_sock_of() */
	u8 shed;	 /* enum tacho_shed: what the programs did without at the last operation */
	u8 choice;	 /* twice the number of the choice, and 1 if it is chosen; 0: nobody has decided */
	bool aside;	 /* its turns are not followed, see socket_sampling.bpf.h */
	u8 opens;	 /* HTTP/2 under TLS begins: `expansion` */
	union {
		bool parted;	  /* TLS_LAST: for sure, since the client had gone by then, or said goodbye */
		bool has_replied; /* datagram socket: it has answered somebody */
	};
	u8 expansion;	   /* HTTP/2 under TLS: by how much a record is longer than its data; 0: not known */
	u8 settles;	   /* TLS 1.3: whether the client begins with HTTP/2's settings, enum settles */
	bool ticketed : 1; /* TLS 1.3: a ticket came with the server's part of the handshake */
	bool http1 : 1;	   /* TLS: the client offers HTTP/1.1 */
	bool interim : 1;  /* client: the header of an interim response's record was read */
	bool goes_on : 1;  /* client: the open call is the rest of one that is counted */
	u8 frames : 3;	   /* TLS 1.3: HTTP/2's first ones, enum first_frames */
	bool gave_sign;	   /* the last send was a sign of life (socket_life_signs.bpf.h) */
	u8 may_be;	   /* enum turn_doubt */
	u64 notes[SOCKET_EVENTS][NOTES_AT_ONCE];
	/* Datagram sockets. A byte each: hooks on other CPUs set them at the same time. */
	bool has_ring;
	bool older; /* it was there before us: others have spoken already */
	bool has_served;
	bool has_called;
	union {
		bool unproven;	/* `older`, and none of its peers is known yet, see prove_role() */
		bool overtaken; /* stream: the hook of a receive may still come, see socket_unseen.bpf.h */
	};
	union {
		u8 slips;   /* modulo 256: what was read, and from whom was not known for sure */
		u8 preface; /* stream server: bytes of HTTP/2's that were read, while that is in doubt */
	};
	bool asks;  /* client, in a TLS handshake: what was sent last is a call */
	u8 noted;   /* of the last turn or call: enum turn_note */
	u64 number; /* tells its peers and its ring from those of other sockets */
	union {
		u64 source;  /* without a ring: who sent what came last */
		u64 records; /* stream server: union record_watch */
	};
	u64 called; /* who was called last */
	union {
		u32 told;     /* without a ring: datagrams of whose arrival a hook has told */
		u32 read_seq; /* stream: up to where it was read, as far as hooks have told; unix: whether */
	};
	u32 read; /* … that were received */
	union {
		u32 doubts;	/* see socket_datagram_ring.bpf.h */
		u32 sent_bytes; /* stream server: by the last send */
	};
	union {
		u64 batch;   /* the sendmmsg that is under way, or was the last one */
		u64 opening; /* stream server: the first bytes of a turn, see socket_brokers.bpf.h */
	};
	union {
		u32 batch_next; /* message of it */
		u32 read_bytes; /* stream server: by the last read */
	};
	union {
		struct {		/* datagram socket */
			u32 calls_open; /* if it only calls */
			u16 calls_run;	/* of these, begun since the last answer */
		};
		struct {		 /* stream: the open turn or call, if it is one that is examined */
			u32 head;	 /* how it begins; 0: it is not examined */
			u32 head_length; /* of the operation that it begins with */
		};
	};
	/* Of the open turn, see socket_anatomy.bpf.h. */
	u64 socket; /* its address, as a number: no pointer to it may be passed to where it is answered */
	u64 reader; /* key of the thread that read last; 0: not known */
	struct wait_mark read_mark;
	u32 reply_bytes;  /* of the send that answers it */
	u32 reader_begun; /* the turn's number among those of whoever began it */
	u16 reader_place;
	bool reader_waits;  /* it has not been told yet that the turn is over */
	bool reader_shared; /* others were open when this one began */
};

/* By target index; each an array of struct socket_shard, whose shape is set before loading. */
TARGET_BLOCKS(socket_blocks);

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct socket_chains);
} socket_chains SEC(".maps");

/* Value: how many sockets listen there (SO_REUSEPORT). */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 16384);
	__type(key, struct listening_port);
	__type(value, u32);
} listening_ports SEC(".maps");

static __always_inline struct socket_shard *get_shard(const struct target_ref *target, u32 shard)
{
	return find_in_block(&socket_blocks, target, shard);
}

/* From a hook in interrupt context, where no look-up by task tells whether the target still is the same one.
 */
static __always_inline struct socket_shard *get_shared_shard(const struct target_ref *target)
{
	u32 index = target->index;
	struct target_settings *settings = bpf_map_lookup_elem(&target_settings, &index);

	if (!settings || settings->epoch != target->epoch)
		return NULL;
	return get_shard(target, SHARED_SHARD);
}

static __always_inline bool is_tcp(struct sock *sk)
{
	u16 family = FIELD(sk, __sk_common.skc_family);

	return (family == AF_INET || family == AF_INET6) && FIELD(sk, sk_protocol) == IPPROTO_TCP;
}

/*
 * A multipath socket (Go listens on such ones by default since 1.24). Beside it there are TCP sockets that
 * only the kernel uses, its subflows; but what a client without MPTCP connects to, is accepted as a TCP
 * socket.
 */
static __always_inline bool is_mptcp(struct sock *sk)
{
	u16 family = FIELD(sk, __sk_common.skc_family);

	return (family == AF_INET || family == AF_INET6) && FIELD(sk, sk_protocol) == IPPROTO_MPTCP;
}

/* The first subflow of a multipath socket; NULL for any other socket. */
static __always_inline const struct tcp_sock *subflow_of(struct sock *sk)
{
	/* A kernel without MPTCP does not know the type. */
	if (!bpf_core_type_exists(struct mptcp_sock) || !is_mptcp(sk))
		return NULL;
	return (const struct tcp_sock *)BPF_CORE_READ((struct mptcp_sock *)sk, first);
}

/* Has a library in the kernel taken the stream over? That is TLS, where a program has asked for it. */
static __always_inline bool has_kernel_tls(const struct tcp_sock *tp)
{
	return tp && BPF_CORE_READ((struct inet_connection_sock *)tp, icsk_ulp_ops);
}

/* UDP-Lite has the same sockets, and ports at the same place of its header. */
static __always_inline bool is_udp(struct sock *sk)
{
	u16 family = FIELD(sk, __sk_common.skc_family);

	u32 protocol = FIELD(sk, sk_protocol);

	/* As one comparison: the verifier goes both ways at each. */
	return (family == AF_INET || family == AF_INET6) &&
	       !((protocol ^ IPPROTO_UDP) * (protocol ^ IPPROTO_UDPLITE));
}

static __always_inline bool is_datagram(struct sock *sk)
{
	return FIELD(sk, sk_type) == SOCK_DGRAM;
}

static __always_inline bool is_unix(struct sock *sk)
{
	return FIELD(sk, __sk_common.skc_family) == AF_UNIX;
}

/* The address of a socket as a number, which a global function takes: the verifier sees a pointer in it. */
static __always_inline u64 as_number(const struct sock *sk)
{
	u64 number = 0;

	bpf_probe_read_kernel(&number, sizeof(number), &sk);
	return number;
}

static __always_inline u64 elapsed(u64 from, u64 to)
{
	return (s64)(to - from) > 0 ? to - from : 0;
}
