/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Sockets, and what they hold. */
#pragma once

#include "kernel_tasks.bpf.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct ns_common {
	unsigned int inum;
};

struct net {
	struct ns_common ns;
};

typedef struct {
	struct net *net;
} possible_net_t;

struct in6_addr {
	union {
		__be32 u6_addr32[4];
	} in6_u;
};

struct hlist_node {
	struct hlist_node **pprev;
};

struct sock_common {
	__be32 skc_daddr;
	__be32 skc_rcv_saddr;
	unsigned int skc_hash;
	struct hlist_node skc_bind_node;
	__be16 skc_dport;
	__u16 skc_num;
	unsigned short skc_family;
	volatile unsigned char skc_state;
	unsigned char skc_ipv6only : 1;
	unsigned char skc_reuseport : 1;
	possible_net_t skc_net;
	struct in6_addr skc_v6_daddr;
	struct in6_addr skc_v6_rcv_saddr;
	unsigned long skc_flags; /* bits of enum sock_flags */
};

typedef struct {
	int counter;
} atomic_t;

typedef struct refcount_struct {
	atomic_t refs;
} refcount_t;

struct socket;
struct sk_buff;

struct socket_wq {
	struct wait_queue_head wait;
};

struct sk_buff_head {
	struct sk_buff *next;
	struct sk_buff *prev;
	u32 qlen;
};

struct sock_cgroup_data {
	struct cgroup *cgroup;
};

struct sock {
	struct sock_common __sk_common;
	struct sk_buff_head sk_receive_queue;
	struct sock_cgroup_data sk_cgrp_data;
	struct pid *sk_peer_pid;
	unsigned char sk_shutdown;
	unsigned char sk_userlocks : 4;
	int sk_forward_alloc;
	int sk_sndbuf;
	refcount_t sk_wmem_alloc;
	u32 sk_max_ack_backlog;
	u16 sk_type;
	u16 sk_protocol;
	struct socket *sk_socket;
	struct socket_wq *sk_wq;
	void *sk_user_data; /* the two lowest bits are flags */
};

struct socket {
	struct file *file;
	struct sock *sk;
};

struct inet_sock {
	struct sock sk;
	__be16 inet_sport;
};

struct tcp_ulp_ops;

struct inet_connection_sock {
	const struct tcp_ulp_ops *icsk_ulp_ops;
	struct {
		u32 lrcvtime; /* of the last data that came, in jiffies */
	} icsk_ack;
};

struct tcp_sock {
	u32 copied_seq;
	u32 rcv_nxt;
	u32 rcv_wup; /* rcv_nxt when something was sent last */
	u32 urg_seq; /* of the last urgent byte */
	u32 write_seq;
	u32 snd_nxt;
	u32 snd_una;
	u64 tcp_clock_cache;
	u32 lsndtime; /* of data, in jiffies */
	u32 chrono_start;
	u32 chrono_stat[3];
	u8 chrono_type : 2;
	u8 syn_data : 1;
	u8 repair : 1;
	bool is_mptcp; /* only with CONFIG_MPTCP */
};

struct mptcp_sock {
	u64 write_seq;
	struct sock *first; /* subflow; a weak pointer */
};

/* Before Linux 6.15 readers took what they read from a queue of their own. */
struct mptcp_sock___own_queue {
	struct sk_buff_head receive_queue;
};

struct mptcp_subflow_context {
	struct sock *conn; /* the multipath socket */
};

struct sk_buff {
	struct sk_buff *next; /* in a queue; NULL once it is taken out */
	struct sk_buff *prev;
	struct sock *sk;
	__be16 protocol;
	__u16 transport_header;
	__u16 network_header;
	unsigned int end; /* an offset, as on every 64-bit kernel */
	unsigned char *head;
};

struct skb_shared_info {
	unsigned short gso_size;
	unsigned short gso_segs;
};

struct sockaddr_un {
	char sun_path[108];
};

struct unix_address {
	refcount_t refcnt;
	int len;
	struct sockaddr_un name[1];
};

struct unix_sock {
	struct sock sk;
	struct unix_address *addr;
	struct sock *peer;
};

/* Of sockets by name (Linux 6.0). */
struct unix_table {
	struct hlist_head *buckets;
};

struct udp_sock {
	__u16 gso_size;
	struct sk_buff_head reader_queue;
	int forward_deficit;
};

#pragma clang attribute pop

/* include/net/tcp_states.h */
enum {
	TCP_ESTABLISHED = 1,
	TCP_SYN_SENT = 2,
	TCP_SYN_RECV = 3,
	TCP_CLOSE = 7,
	TCP_CLOSE_WAIT = 8,
	TCP_LISTEN = 10,
};

/* include/linux/socket.h, include/linux/net.h, include/net/sock.h, include/uapi/linux/udp.h */
enum {
	AF_UNIX = 1,
	AF_INET = 2,
	AF_INET6 = 10,
	SOCK_STREAM = 1,
	SOCK_DGRAM = 2,
	SOCK_SEQPACKET = 5,
	SOL_UDP = 17,
	UDP_SEGMENT = 103,
	ETH_P_IP = 0x0800,
	POLLIN = 1,
	IPPROTO_TCP = 6,
	IPPROTO_UDP = 17,
	IPPROTO_UDPLITE = 136,
	IPPROTO_MPTCP = 262,
	MSG_PEEK = 0x2,
	MSG_ERRQUEUE = 0x2000,
	RCV_SHUTDOWN = 1,
	SEND_SHUTDOWN = 2,
	SOCK_BINDPORT_LOCK = 8,
	SOCK_BROADCAST = 6, /* of skc_flags */
};
