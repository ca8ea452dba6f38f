/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * The part of the kernel's types that the programs touch. Every access is relocated at load time (CO-RE), so
 * only names and nesting must be right, not layout; no BTF is needed on the machine that builds.
 */
#pragma once

#include <linux/types.h>
#include <stdbool.h>

#include <linux/bpf.h>

typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef __s32 s32;
typedef __s64 s64;

/* include/uapi/asm-generic/errno-base.h */
#define EEXIST 17

/* Makes bpf_tracing.h use the kernel's names of registers. */
#define __VMLINUX_H__

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

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

struct sock_common {
	__be32 skc_daddr;
	__be32 skc_rcv_saddr;
	__be16 skc_dport;
	__u16 skc_num;
	unsigned short skc_family;
	volatile unsigned char skc_state;
	unsigned char skc_ipv6only : 1;
	possible_net_t skc_net;
	struct in6_addr skc_v6_daddr;
	struct in6_addr skc_v6_rcv_saddr;
};

struct socket;
struct sk_buff;
struct file;

struct list_head {
	struct list_head *next;
};

struct wait_queue_head {
	struct list_head head;
};

struct wait_queue_entry {
	void *private;
	struct list_head entry;
};

struct socket_wq {
	struct wait_queue_head wait;
};

struct poll_table_page;

struct poll_wqueues {
	struct poll_table_page *table;
	int inline_index;
};

struct poll_table_entry {
	unsigned int key;
	struct wait_queue_entry wait;
	struct wait_queue_head *wait_address;
};

struct sk_buff_head {
	struct sk_buff *next;
	struct sk_buff *prev;
	u32 qlen;
};

struct cgroup;

struct sock_cgroup_data {
	struct cgroup *cgroup;
};

struct upid {
	int nr;
};

struct pid {
	struct upid numbers[1];
};

struct sock {
	struct sock_common __sk_common;
	struct sk_buff_head sk_receive_queue;
	struct sock_cgroup_data sk_cgrp_data;
	struct pid *sk_peer_pid;
	unsigned char sk_shutdown;
	unsigned char sk_userlocks : 4;
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
};

struct tcp_sock {
	u32 copied_seq;
	u32 rcv_nxt;
	u32 write_seq;
	u32 snd_nxt;
	u32 snd_una;
	u64 tcp_clock_cache;
	u32 chrono_start;
	u32 chrono_stat[3];
	u8 chrono_type : 2;
	u8 syn_data : 1;
	bool is_mptcp; /* only with CONFIG_MPTCP */
};

struct mptcp_sock {
	struct sock *first; /* subflow; a weak pointer */
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

typedef struct {
	int counter;
} atomic_t;

typedef struct refcount_struct {
	atomic_t refs;
} refcount_t;

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

struct udp_sock {
	__u16 gso_size;
	struct sk_buff_head reader_queue;
};

struct super_block {
	unsigned long s_magic;
};

struct inode {
	struct super_block *i_sb;
	unsigned short i_mode;
};

struct qstr {
	const unsigned char *name;
};

struct hlist_bl_node {
	struct hlist_bl_node **pprev;
};

struct dentry {
	struct hlist_bl_node d_hash;
	struct dentry *d_parent;
	struct qstr d_name;
};

struct path {
	struct dentry *dentry;
};

struct file {
	struct inode *f_inode;
	void *private_data;
	struct path f_path;
};

struct mm_struct {
	struct file *exe_file;
};

struct fdtable {
	unsigned int max_fds;
	struct file **fd;
};

struct files_struct {
	struct fdtable *fdt;
};

typedef struct {
	unsigned int val;
} kuid_t;

struct cred {
	kuid_t uid;
};

struct kernfs_node {
	u64 id;
	const char *name;
};

struct cgroup_root {
	int hierarchy_id;
	unsigned int subsys_mask;
};

struct cgroup_subsys_state {
	struct cgroup *cgroup;
	struct cgroup_subsys_state *parent;
	struct list_head sibling;
	struct list_head children;
	unsigned int flags;
};

struct cgroup {
	struct cgroup_subsys_state self;
	struct kernfs_node *kn;
	struct cgroup_root *root;
};

/* Its numbers depend on the kernel's configuration. */
enum cgroup_subsys_id { memory_cgrp_id };

struct css_set {
	struct cgroup_subsys_state *subsys[1]; /* one a controller */
	struct cgroup *dfl_cgrp;
};

struct cpumask {
	unsigned long bits[1];
};

struct bpf_local_storage;
struct task_struct;

struct pid_namespace {
	struct task_struct *child_reaper;
};

struct nsproxy {
	struct pid_namespace *pid_ns_for_children;
};

struct task_struct {
	void *stack;
	int pid;
	int tgid;
	unsigned int flags;
	unsigned int __state;
	int exit_state;
	int on_cpu;
	unsigned in_iowait : 1;
	int nr_cpus_allowed;
	struct cpumask cpus_mask;
	struct mm_struct *mm;
	struct task_struct *real_parent;
	struct task_struct *group_leader;
	const struct cred *real_cred;
	struct files_struct *files;
	struct nsproxy *nsproxy;
	struct css_set *cgroups;
	struct bpf_local_storage *bpf_storage;
};

/* The registers of a task that has entered the kernel. */
#if defined(__TARGET_ARCH_x86)
struct pt_regs {
	unsigned long r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di, orig_ax, ip, cs,
	    flags, sp, ss;
};
#define SYSCALL_NUMBER orig_ax
#define FIRST_ARGUMENT di
#elif defined(__TARGET_ARCH_arm64)
struct user_pt_regs {
	__u64 regs[31];
	__u64 sp;
	__u64 pc;
	__u64 pstate;
};
struct pt_regs {
	union {
		struct user_pt_regs user_regs;
	};
	u64 orig_x0;
	int syscallno;
};
#define SYSCALL_NUMBER syscallno
#define FIRST_ARGUMENT orig_x0
#endif

struct seq_file;

struct bpf_iter_meta {
	struct seq_file *seq;
};

struct bpf_map;

struct bpf_iter__bpf_map_elem {
	struct bpf_iter_meta *meta;
	struct bpf_map *map;
	void *key;
	void *value;
};

struct bpf_iter__bpf_sk_storage_map {
	struct bpf_iter_meta *meta;
	struct bpf_map *map;
	struct sock *sk;
	void *value;
};

struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
};

struct bpf_iter__tcp {
	struct bpf_iter_meta *meta;
	struct sock_common *sk_common;
};

struct bpf_iter__task_file {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
	u32 fd;
	struct file *file;
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

/* include/linux/socket.h, include/linux/net.h, include/net/sock.h, include/linux/sched.h */
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
	IPPROTO_MPTCP = 262,
	MSG_PEEK = 0x2,
	MSG_ERRQUEUE = 0x2000,
	RCV_SHUTDOWN = 1,
	SEND_SHUTDOWN = 2,
	SOCK_BINDPORT_LOCK = 8,
	TASK_INTERRUPTIBLE = 1,
	TASK_DEAD = 0x80,
	TASK_WAKING = 0x200,
	TASK_NEW = 0x800,
	PF_IO_WORKER = 0x10,
	PF_USER_WORKER = 0x4000,
	PF_KTHREAD = 0x200000,
};
