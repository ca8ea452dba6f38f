/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * The sender of a datagram, and its destination.
 *
 * No hook says either. The sender stands in the headers of the packet when it arrives, the destination in the
 * arguments of the call that sends. Of the payload nothing is looked at but whether it begins like QUIC's
 * long header (RFC 8999, 5.1).
 */
#pragma once

#include "socket_buffers.bpf.h"
#include "socket_state.bpf.h"

/* In place of an address's hash. */
#define ADDRESS_UNKNOWN 0ULL
/* For sockets whose peers are not distinguished. */
#define ADDRESS_SOLE 1ULL
/* Any address. */
#define ADDRESS_ANY 2ULL

/* IPv4 addresses stand as IPv4-mapped IPv6. */
struct datagram_address {
	u32 words[4];
	__be16 port;
};

static __always_inline u64 mix(u64 a, u64 b)
{
	a = (a ^ b) * 0x9E3779B97F4A7C15ULL;
	return a ^ a >> 29;
}

static __always_inline bool is_ipv4(const u32 *words)
{
	return !words[0] && !words[1] && words[2] == bpf_htonl(0xffff);
}

/* Nobody's own: unspecified, broadcast, multicast. */
static __always_inline bool is_of_many(const struct datagram_address *a)
{
	u8 first = (u8)a->words[0];

	if (!is_ipv4(a->words))
		return first == 0xff || !(a->words[0] | a->words[1] | a->words[2] | a->words[3]);
	first = (u8)a->words[3];
	return !a->words[3] || first >= 224;
}

/* The port is in the lower bits, of the others only the top one is not the host's: it is set. */
static __always_inline u64 hash_address(const struct datagram_address *a)
{
	u64 hash;

	if (is_of_many(a))
		return ADDRESS_UNKNOWN;
	hash = mix((u64)a->words[0] << 32 | a->words[1], mix((u64)a->words[2] << 32 | a->words[3], 0));
	return (hash & ~0xffffULL) | 1ULL << 63 | bpf_ntohs(a->port);
}

static __always_inline u32 port_of_address(u64 hash)
{
	return hash & 0xffff;
}

static __always_inline bool is_of_same_host(u64 hash, u64 other)
{
	return !((hash ^ other) >> 16);
}

/* Which the socket is bound to, as in struct datagram_address. */
static __always_inline void read_own_address(u32 *words, const struct sock *sk)
{
	words[0] = words[1] = 0;
	words[2] = bpf_htonl(0xffff);
	words[3] = BPF_CORE_READ(sk, __sk_common.skc_rcv_saddr);
	if (BPF_CORE_READ(sk, __sk_common.skc_family) == AF_INET6)
		BPF_CORE_READ_INTO((struct in6_addr *)words, sk, __sk_common.skc_v6_rcv_saddr);
}

static __always_inline void connected_address(struct datagram_address *address, struct sock *sk)
{
	address->words[0] = address->words[1] = 0;
	address->words[2] = bpf_htonl(0xffff);
	address->words[3] = FIELD(sk, __sk_common.skc_daddr);
	if (FIELD(sk, __sk_common.skc_family) == AF_INET6)
		BPF_CORE_READ_INTO((struct in6_addr *)address->words, sk, __sk_common.skc_v6_daddr);
	address->port = FIELD(sk, __sk_common.skc_dport);
}

/* A datagram that has come. */
struct arrival {
	u64 source;	   /* hash of its address */
	u32 count;	   /* of datagrams in it: more than one where they came together (UDP_GRO) */
	u32 segment_bytes; /* of each of these */
	bool quic;
};

/* From the source address of an IPv4 packet without options on. */
struct packet_head {
	u32 source;
	u32 destination;
	__be16 source_port;
	__be16 destination_port;
	u32 length_and_checksum;
	u8 payload[8];
};

#define IPV4_HEADER_BYTES 20
#define IPV4_SOURCE 12
#define IPV6_SOURCE 8

/* Version 1, which every connection of today begins with, and version 2 (RFC 9369). */
static __always_inline bool begins_quic(const u8 *payload)
{
	u32 version = (u32)payload[1] << 24 | (u32)payload[2] << 16 | (u32)payload[3] << 8 | payload[4];

	return (payload[0] & 0xc0) == 0xc0 && (version == 1 || version == 0x6b3343cf);
}

static __always_inline void read_arrival(struct arrival *arrival, struct sk_buff *skb)
{
	u16 transport = BPF_CORE_READ(skb, transport_header), network = BPF_CORE_READ(skb, network_header);
	const u8 *head = BPF_CORE_READ(skb, head);
	struct datagram_address from = {.words = {0, 0, bpf_htonl(0xffff), 0}};
	struct packet_head packet = {};
	struct skb_shared_info *shared = (struct skb_shared_info *)(head + BPF_CORE_READ(skb, end));

	bpf_probe_read_kernel(&packet, sizeof(packet),
			      head + transport - __builtin_offsetof(struct packet_head, source_port));
	from.words[3] = packet.source;
	if (BPF_CORE_READ(skb, protocol) != bpf_htons(ETH_P_IP))
		bpf_probe_read_kernel(from.words, sizeof(from.words), head + network + IPV6_SOURCE);
	else if ((u16)(transport - network) != IPV4_HEADER_BYTES)
		bpf_probe_read_kernel(&from.words[3], sizeof(u32), head + network + IPV4_SOURCE);
	from.port = packet.source_port;
	arrival->source = hash_address(&from);
	arrival->quic = begins_quic(packet.payload);
	arrival->count = BPF_CORE_READ(shared, gso_segs);
	if (!arrival->count)
		arrival->count = 1;
	if (arrival->count > 1)
		arrival->segment_bytes = BPF_CORE_READ(shared, gso_size);
}

/* struct msghdr in user space, on 64 bit. */
struct user_message {
	u64 name;
	u64 name_length;
	u64 vector;
	u64 parts;
	u64 control;
	u64 control_length;
};

/* struct mmsghdr: with the length and padding. */
#define USER_MESSAGES_STRIDE 64

/* struct cmsghdr with the size of segments. */
struct user_control {
	u64 length;
	int level;
	int type;
	u16 value;
};

/* The size of segments that the call asks for (UDP_SEGMENT); 0: none. */
static __always_inline u32 asked_segment_bytes(const struct user_message *message)
{
	u64 at = message->control;
	struct user_control control;

	for (int i = 0; i < 3; i++) {
		if (at + sizeof(u64) * 2 + sizeof(u16) > message->control + message->control_length ||
		    bpf_probe_read_user(&control, sizeof(control), (const void *)at))
			return 0;
		if (control.level == SOL_UDP && control.type == UDP_SEGMENT)
			return control.value;
		at += (control.length + 7) & ~7ULL;
	}
	return 0;
}

/* Which message of a sendmmsg it is that has just been sent. A message that fails ends the call. */
static __always_inline u32 message_of_batch(struct socket_state *st, u64 vector, u32 messages)
{
	u64 batch = mix(vector, bpf_get_current_pid_tgid());
	u32 number = st->batch == batch ? st->batch_next : 0;

	st->batch = batch;
	st->batch_next = number + 1 < messages ? number + 1 : 0;
	return number;
}

/* A datagram that has been sent. */
struct departure {
	struct datagram_address address;
	u64 destination; /* hash of the address; ADDRESS_UNKNOWN: not known, or everybody */
	u32 segment_bytes;
};

static __always_inline bool read_user_address(struct datagram_address *address, const void *name)
{
	/* struct sockaddr_in6; of an IPv4 address the first 16 bytes. */
	struct {
		u16 family;
		__be16 port;
		u32 ipv4; /* flow label of IPv6 */
		u32 words[4];
	} user = {};

	if (bpf_probe_read_user(&user, 16, name))
		return false;
	address->port = user.port;
	if (user.family == AF_INET6) {
		if (bpf_probe_read_user(&user, sizeof(user), name))
			return false;
		__builtin_memcpy(address->words, user.words, sizeof(user.words));
		return true;
	}
	address->words[0] = address->words[1] = 0;
	address->words[2] = bpf_htonl(0xffff);
	address->words[3] = user.ipv4;
	return true;
}

/* By the arguments of the running call; what io_uring sends is not found there. */
static __noinline void read_departure(struct departure *departure, struct sock *sk, struct socket_state *st)
{
	struct pt_regs *regs = current_registers();
	struct user_message message = {};
	u64 at = PT_REGS_PARM2_CORE_SYSCALL(regs);

	switch (BPF_CORE_READ(regs, SYSCALL_NUMBER)) {
	case __NR_sendto:
		message.name = PT_REGS_PARM5_CORE_SYSCALL(regs);
		break;
	case __NR_sendmmsg:
		at += (u64)message_of_batch(st, at, PT_REGS_PARM3_CORE_SYSCALL(regs)) * USER_MESSAGES_STRIDE;
		/* fallthrough */
	case __NR_sendmsg:
		bpf_probe_read_user(&message, sizeof(message), (const void *)at);
		break;
	}
	if (message.control && message.control_length)
		departure->segment_bytes = asked_segment_bytes(&message);
	if (st->role == TACHO_ROLE_DATAGRAM_CLIENT)
		return;
	if (FIELD(sk, __sk_common.skc_dport) && !message.name)
		connected_address(&departure->address, sk);
	else if (!message.name || !read_user_address(&departure->address, (const void *)message.name))
		return;
	departure->destination = hash_address(&departure->address);
}

/* A message of a sendmmsg has failed: the next one is the first of another call. */
static __always_inline void end_batch(struct socket_state *st)
{
	st->batch = 0;
}
