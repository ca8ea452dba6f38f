/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* The place of a socket's state: its own storage, or a hash by its address (lib/compat.bpf.h). */
#pragma once

#include "socket_state.bpf.h"

/*
 * Is the socket in a sockmap? Then its data may go right into the queue of another socket, past TCP (service
 * meshes speed up connections within a node so), and positions in the stream stand still: it has none. The
 * kernel hangs what it needs for that (struct sk_psock) to sk_user_data; an array of listening sockets does,
 * too, and marks it (SK_USER_DATA_BPF).
 */
#define USER_DATA_OF_ARRAY 2

static __always_inline bool may_go_past_tcp(struct sock *sk)
{
	u64 data = (u64)FIELD(sk, sk_user_data);

	return data && !(data & USER_DATA_OF_ARRAY);
}

#if !SOCKET_STORAGE

/* Entries are freed with their sockets (hook `socket_gone`). */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 65536);
	__type(key, u64);
	__type(value, struct socket_state);
} socket_states SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct socket_state);
} no_socket_state SEC(".maps");

static __always_inline struct socket_state *state_of(struct sock *sk)
{
	u64 key = (u64)sk;

	return bpf_map_lookup_elem(&socket_states, &key);
}

static __always_inline struct socket_state *new_state(struct sock *sk, const struct socket_state *initial)
{
	u64 key = (u64)sk;
	u32 zero = 0;

	if (!initial)
		initial = bpf_map_lookup_elem(&no_socket_state, &zero);
	if (initial)
		bpf_map_update_elem(&socket_states, &key, initial, BPF_NOEXIST);
	return bpf_map_lookup_elem(&socket_states, &key);
}

static __always_inline void drop_state(struct sock *sk)
{
	u64 key = (u64)sk;

	bpf_map_delete_elem(&socket_states, &key);
}

/* The listening socket that this CPU makes a connection's socket of (inet_csk_clone_lock, bottom halves off).
 */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u64);
} cloned_socket SEC(".maps");

static __always_inline void note_clone(struct sock *listener)
{
	u32 zero = 0;
	u64 *cloned = bpf_map_lookup_elem(&cloned_socket, &zero);

	if (cloned)
		*cloned = (u64)listener;
}

/* What BPF_F_CLONE does for socket storage. */
static __always_inline void inherit_state(struct sock *child)
{
	u32 zero = 0;
	u64 *cloned = bpf_map_lookup_elem(&cloned_socket, &zero);
	struct socket_state *state;

	if (!cloned || !*cloned)
		return;
	state = bpf_map_lookup_elem(&socket_states, cloned);
	*cloned = 0;
	if (state)
		new_state(child, state);
}

static __always_inline struct sock *unix_peer(struct sock *sk)
{
	return BPF_CORE_READ((struct unix_sock *)sk, peer);
}

/* bpf_skc_to_tcp_sock is for pointers that the verifier knows. */
static __always_inline struct tcp_sock *tcp_sock_of(struct sock *sk)
{
	return is_tcp(sk) && !may_go_past_tcp(sk) ? (struct tcp_sock *)sk : NULL;
}

#else

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC | BPF_F_CLONE);
	__type(key, int);
	__type(value, struct socket_state);
} socket_states SEC(".maps");

static __always_inline struct socket_state *state_of(struct sock *sk)
{
	return bpf_sk_storage_get(&socket_states, sk, NULL, 0);
}

/*
 * Tried twice: of two hooks that make a socket's first storage at a time (an answer may arrive on one CPU
 * before the hook of the send has run on another; two tachos watch it), one is told EAGAIN or EEXIST.
 */
static __always_inline struct socket_state *new_state(struct sock *sk, struct socket_state *initial)
{
	struct socket_state *st =
	    bpf_sk_storage_get(&socket_states, sk, initial, BPF_SK_STORAGE_GET_F_CREATE);

	return st ? st : bpf_sk_storage_get(&socket_states, sk, initial, BPF_SK_STORAGE_GET_F_CREATE);
}

static __always_inline void drop_state(struct sock *sk)
{
	bpf_sk_storage_delete(&socket_states, sk);
}

static __always_inline void inherit_state(struct sock *child)
{
}

/* Linux 5.16 has bpf_skc_to_unix_sock. */
static __always_inline struct sock *unix_peer(struct sock *sk)
{
	if (bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_skc_to_unix_sock)) {
		struct unix_sock *self = bpf_skc_to_unix_sock(sk);

		return self ? self->peer : NULL;
	}
	return NULL;
}

static __always_inline struct tcp_sock *tcp_sock_of(struct sock *sk)
{
	return may_go_past_tcp(sk) ? NULL : bpf_skc_to_tcp_sock(sk);
}

#endif

/* A socket's new state, a copy of `from` or zeroes; what another hook has made meanwhile. */
static __always_inline struct socket_state *make_state(struct sock *sk, struct socket_state *from)
{
	struct socket_state *st = new_state(sk, from);

	if (!st)
		count_loss(TACHO_LOST_SOCKET_STATE);
	return st;
}

static __always_inline bool is_subflow(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sock_of(sk);

	return tp && bpf_core_field_exists(tp->is_mptcp) && FIELD(tp, is_mptcp);
}

/* Id of the cgroup that the socket was made in; 0 if it is not known, as without cgroup v2. */
static __always_inline u64 cgroup_of_socket(struct sock *sk)
{
	return cgroup_v1 ? 0 : socket_group_id(sk);
}
