/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Kernels before 6.3 lack the tracepoints of the socket layer; these are the functions behind them.
 *
 * sock_sendmsg and sock_recvmsg are inlined or bypassed on some path of every kernel. The families' own
 * functions are called through pointers, which nothing can bypass, and none of them calls another one of the
 * list. A function that a kernel lacks (sendpage: gone with 6.5) is left out when the programs are loaded.
 * The number of arguments has to be right: with too few, fexit passes an argument instead of the result.
 */
#pragma once

#include "socket_storage.bpf.h"

static __always_inline void on_call_returned(struct socket *socket, long ret, int flags, u32 direction)
{
	on_socket_returned(FIELD(socket, sk), ret, flags, direction);
}

/* int (struct socket *, struct msghdr *, size_t) */
#define ON_SENDMSG(function)                                                                                 \
	SEC("fexit/" #function)                                                                              \
	int BPF_PROG(socket_fexit_##function, struct socket *socket, void *message, unsigned long size,      \
		     int ret)                                                                                \
	{                                                                                                    \
		on_call_returned(socket, ret, 0, TACHO_SEND);                                                \
		return 0;                                                                                    \
	}

/* ssize_t (struct socket *, struct page *, int, size_t, int) */
#define ON_SENDPAGE(function)                                                                                \
	SEC("fexit/" #function)                                                                              \
	int BPF_PROG(socket_fexit_##function, struct socket *socket, void *page, int offset,                 \
		     unsigned long size, int flags, long ret)                                                \
	{                                                                                                    \
		on_call_returned(socket, ret, 0, TACHO_SEND);                                                \
		return 0;                                                                                    \
	}

/* int (struct socket *, struct msghdr *, size_t, int) */
#define ON_RECVMSG(function)                                                                                 \
	SEC("fexit/" #function)                                                                              \
	int BPF_PROG(socket_fexit_##function, struct socket *socket, void *message, unsigned long size,      \
		     int flags, int ret)                                                                     \
	{                                                                                                    \
		on_call_returned(socket, ret, flags, TACHO_RECEIVE);                                         \
		return 0;                                                                                    \
	}

/*
 * int (struct sock *, struct msghdr *, size_t, int). From 5.15 on unix_dgram_recvmsg is a shell around this
 * one, which the compiler may put into unix_seqpacket_recvmsg.
 */
SEC("fexit/__unix_dgram_recvmsg")
int BPF_PROG(socket_fexit___unix_dgram_recvmsg, struct sock *sk, void *message, unsigned long size, int flags,
	     int ret)
{
	on_socket_returned(sk, ret, flags, TACHO_RECEIVE);
	return 0;
}

/* ssize_t (struct socket *, loff_t *, struct pipe_inode_info *, size_t, unsigned int) */
#define ON_SPLICE_READ(function)                                                                             \
	SEC("fexit/" #function)                                                                              \
	int BPF_PROG(socket_fexit_##function, struct socket *socket, void *position, void *pipe,             \
		     unsigned long size, unsigned int flags, long ret)                                       \
	{                                                                                                    \
		on_call_returned(socket, ret, 0, TACHO_RECEIVE);                                             \
		return 0;                                                                                    \
	}

ON_SENDMSG(inet_sendmsg)
ON_SENDMSG(inet6_sendmsg)
ON_SENDMSG(unix_stream_sendmsg)
ON_SENDMSG(unix_dgram_sendmsg)
ON_SENDPAGE(inet_sendpage)
ON_SENDPAGE(unix_stream_sendpage)
ON_RECVMSG(inet_recvmsg)
ON_RECVMSG(inet6_recvmsg)
ON_RECVMSG(unix_stream_recvmsg)
ON_RECVMSG(unix_dgram_recvmsg)
/* The tracepoints do not see these either. */
ON_SPLICE_READ(tcp_splice_read)
ON_SPLICE_READ(mptcp_splice_read)
ON_SPLICE_READ(unix_stream_splice_read)

SEC("fentry/sock_def_readable")
int BPF_PROG(socket_fentry_data_ready, struct sock *sk)
{
	on_data_ready(sk);
	return 0;
}

#if !SOCKET_STORAGE

SEC("fentry/inet_csk_clone_lock")
int BPF_PROG(socket_fentry_clone, struct sock *listener)
{
	note_clone(listener);
	return 0;
}

static __always_inline void on_socket_gone(struct sock *sk)
{
	drop_state(sk);
}

SEC("fentry/inet_sock_destruct")
int BPF_PROG(socket_fentry_inet_gone, struct sock *sk)
{
	on_socket_gone(sk);
	return 0;
}

SEC("fentry/unix_sock_destructor")
int BPF_PROG(socket_fentry_unix_gone, struct sock *sk)
{
	on_socket_gone(sk);
	return 0;
}

/* The arguments of the calls in progress: a return probe sees only the result. By thread. */
struct socket_call {
	u64 sk;
	u32 flags;
	u32 pad;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 16384);
	__type(key, u64);
	__type(value, struct socket_call);
} socket_calls SEC(".maps");

static __always_inline void on_call_entered(struct sock *sk, u32 flags)
{
	struct socket_call call = {.sk = (u64)sk, .flags = flags};
	u64 thread = bpf_get_current_pid_tgid();

	if (bpf_map_update_elem(&socket_calls, &thread, &call, BPF_ANY))
		count_loss(TACHO_LOST_MAP_FULL);
}

static __always_inline void on_call_left(long ret, u32 direction)
{
	u64 thread = bpf_get_current_pid_tgid();
	struct socket_call *found, call;

	if (is_unwatched_task())
		return;
	found = bpf_map_lookup_elem(&socket_calls, &thread);
	if (!found)
		return;
	call = *found;
	bpf_map_delete_elem(&socket_calls, &thread);
	on_socket_returned((struct sock *)call.sk, ret, call.flags, direction);
}

/* A return value of type int has rubbish in its upper half. */
#define ON_CALL_OF(function, socket_argument, direction, type, flags)                                        \
	SEC("kprobe/" #function)                                                                             \
	int socket_kprobe_##function(struct pt_regs *ctx)                                                    \
	{                                                                                                    \
		if (!is_unwatched_task())                                                                    \
			on_call_entered(socket_argument, flags);                                             \
		return 0;                                                                                    \
	}                                                                                                    \
	SEC("kretprobe/" #function)                                                                          \
	int socket_kretprobe_##function(struct pt_regs *ctx)                                                 \
	{                                                                                                    \
		on_call_left((type)PT_REGS_RC(ctx), direction);                                              \
		return 0;                                                                                    \
	}

#define ON_CALL(function, direction, type, flags)                                                            \
	ON_CALL_OF(function, FIELD((struct socket *)PT_REGS_PARM1(ctx), sk), direction, type, flags)

ON_CALL(inet_sendmsg, TACHO_SEND, int, 0)
ON_CALL(inet6_sendmsg, TACHO_SEND, int, 0)
ON_CALL(unix_stream_sendmsg, TACHO_SEND, int, 0)
ON_CALL(unix_dgram_sendmsg, TACHO_SEND, int, 0)
ON_CALL(inet_sendpage, TACHO_SEND, long, 0)
ON_CALL(unix_stream_sendpage, TACHO_SEND, long, 0)
ON_CALL(inet_recvmsg, TACHO_RECEIVE, int, PT_REGS_PARM4(ctx))
ON_CALL(inet6_recvmsg, TACHO_RECEIVE, int, PT_REGS_PARM4(ctx))
ON_CALL(unix_stream_recvmsg, TACHO_RECEIVE, int, PT_REGS_PARM4(ctx))
ON_CALL(unix_dgram_recvmsg, TACHO_RECEIVE, int, PT_REGS_PARM4(ctx))
ON_CALL_OF(__unix_dgram_recvmsg, (struct sock *)PT_REGS_PARM1(ctx), TACHO_RECEIVE, int, PT_REGS_PARM4(ctx))
ON_CALL(tcp_splice_read, TACHO_RECEIVE, long, 0)
ON_CALL(mptcp_splice_read, TACHO_RECEIVE, long, 0)
ON_CALL(unix_stream_splice_read, TACHO_RECEIVE, long, 0)

SEC("kprobe/sock_def_readable")
int socket_kprobe_data_ready(struct pt_regs *ctx)
{
	on_data_ready((struct sock *)PT_REGS_PARM1(ctx));
	return 0;
}

SEC("kprobe/inet_csk_clone_lock")
int socket_kprobe_clone(struct pt_regs *ctx)
{
	note_clone((struct sock *)PT_REGS_PARM1(ctx));
	return 0;
}

SEC("kprobe/inet_sock_destruct")
int socket_kprobe_inet_gone(struct pt_regs *ctx)
{
	on_socket_gone((struct sock *)PT_REGS_PARM1(ctx));
	return 0;
}

SEC("kprobe/unix_sock_destructor")
int socket_kprobe_unix_gone(struct pt_regs *ctx)
{
	on_socket_gone((struct sock *)PT_REGS_PARM1(ctx));
	return 0;
}

#endif
