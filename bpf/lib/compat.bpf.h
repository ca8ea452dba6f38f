/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * The abilities of kernels and hooks differ, and programs with them. This file alone knows the variants; the
 * others ask for an ability (tests/unit/structure).
 *
 * The programs are compiled in two variants, sched in a third one.
 *
 * The full variant follows pointers that the verifier knows, keeps state in the storage of sockets and tasks
 * and uses atomics that return the old value: Linux 5.13 and later, in BTF tracepoints, fentry and fexit.
 * The fallback variant, with TACHO_BASIC defined, is for Linux 5.10 and for kprobes everywhere:
 *   - members are read by bpf_probe_read_kernel (+10 ns each),
 *   - state is in hash maps (a look-up 5 ns instead of 3, making and dropping one 72 ns),
 *   - old values are read before they are changed: with two CPUs at once in the same place a sum of intervals
 *     can be off by one, and two datagrams can take one slot.
 * With TACHO_TASK_HASH only the state of threads is in a hash: Linux 5.15 to 6.3.
 */
#pragma once

#include "lib/kernel.bpf.h"

#ifdef TACHO_BASIC
#define FULL_VARIANT 0
#else
#define FULL_VARIANT 1
#endif

/* A program is given pointers whose types the verifier knows: not a kprobe, and on Linux 5.10 not always. */
#define TYPED_POINTERS FULL_VARIANT

/* Atomics that return the old value: Linux 5.12 (5ca419f2864a, 5ffa25502b5a). */
#define FETCHING_ATOMICS FULL_VARIANT

/* Global functions that take pointers: Linux 5.13 (e5069b9c23b3). */
#define GLOBAL_POINTERS FULL_VARIANT

/*
 * Storage of sockets in programs for tracing: Linux 5.11 (8e4597c627fb), for typed pointers only. Without it
 * state is in a hash by the socket's address, and the ends of sockets have to be seen.
 */
#define SOCKET_STORAGE FULL_VARIANT

/*
 * Storage of tasks: Linux 5.11 (4cf1bc1f1045), for typed pointers only. Since Linux 6.4 (08a7ce384e33) it can
 * be made where threads are switched.
 */
#ifdef TACHO_TASK_HASH
#define TASK_STORAGE 0
#else
#define TASK_STORAGE FULL_VARIANT
#endif

/* bpf_loop: Linux 5.17 (e6f2dd0f8067). Linux 5.10 refuses a program that has it, even where it is not
 * reached.
 */
#define MAY_LOOP FULL_VARIANT

#define TRACEPOINT_PROGRAM(section, name, call, arguments...)                                                \
	SEC(section)                                                                                         \
	int BPF_PROG(name, ##arguments)                                                                      \
	{                                                                                                    \
		call;                                                                                        \
		return 0;                                                                                    \
	}

#if TYPED_POINTERS

#define FIELD(pointer, member) ((pointer)->member)
#define BITFIELD(pointer, member) BPF_CORE_READ_BITFIELD(pointer, member)
/* Of a system call, by its registers. */
#define SYSCALL_ARGUMENT(regs, number) PT_REGS_PARM##number##_SYSCALL(regs)

#define ON_TRACEPOINT(event, name, call, arguments...)                                                       \
	TRACEPOINT_PROGRAM("tp_btf/" #event, name, call, ##arguments)

/* Linux 5.11 (3ca1032ab7ab). */
static __always_inline struct task_struct *current_task(void)
{
	return bpf_get_current_task_btf();
}

/* Linux 5.15 (dd6e10fbd9fb). */
static __always_inline struct pt_regs *task_registers(struct task_struct *task)
{
	return (struct pt_regs *)bpf_task_pt_regs(task);
}

static __always_inline struct pt_regs *current_registers(void)
{
	return task_registers(current_task());
}

/* Linux 5.11 (4f19cab76136). */
static __always_inline struct sock *sock_of_file(struct file *file)
{
	struct socket *socket = bpf_sock_from_file(file);

	return socket ? socket->sk : NULL;
}

#else

#define FIELD(pointer, member) BPF_CORE_READ(pointer, member)
#define BITFIELD(pointer, member) BPF_CORE_READ_BITFIELD_PROBED(pointer, member)
#define SYSCALL_ARGUMENT(regs, number) PT_REGS_PARM##number##_CORE_SYSCALL(regs)

/* A second program for kernels without type information of their own (--btf.path), which know no tp_btf. */
#define ON_TRACEPOINT(event, name, call, arguments...)                                                       \
	TRACEPOINT_PROGRAM("tp_btf/" #event, name, call, ##arguments)                                        \
	TRACEPOINT_PROGRAM("raw_tp/" #event, raw_##name, call, ##arguments)

/* Whether the kernel knows its own types: what helpers return is typed. Set before loading. */
const volatile __u32 kernel_types = 1;

static __always_inline struct task_struct *current_task(void)
{
	return (struct task_struct *)bpf_get_current_task();
}

/* THREAD_SIZE of both architectures, without KASAN; the registers are at the end of the stack. */
#define KERNEL_STACK_BYTES 16384

static __always_inline struct pt_regs *task_registers(struct task_struct *task)
{
	return (struct pt_regs *)(FIELD(task, stack) + KERNEL_STACK_BYTES -
				  bpf_core_type_size(struct pt_regs));
}

static __always_inline struct pt_regs *current_registers(void)
{
	if (kernel_types && bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_task_pt_regs))
		return (struct pt_regs *)bpf_task_pt_regs(bpf_get_current_task_btf());
	return task_registers(current_task());
}

/* include/uapi/linux/magic.h */
#define SOCKFS_MAGIC 0x534F434B

static __always_inline struct sock *sock_of_file(struct file *file)
{
	struct socket *socket;

	if (BPF_CORE_READ(file, f_inode, i_sb, s_magic) != SOCKFS_MAGIC)
		return NULL;
	socket = FIELD(file, private_data);
	return socket ? FIELD(socket, sk) : NULL;
}

#endif

/* Was it bound to a port that its program chose? Else the kernel has chosen it, or it was accepted. */
static __always_inline bool chose_port(struct sock *sk)
{
	return BPF_CORE_READ_BITFIELD_PROBED(sk, sk_userlocks) & SOCK_BINDPORT_LOCK;
}

#if FETCHING_ATOMICS

static __always_inline u64 exchange(u64 *place, u64 value)
{
	return __sync_lock_test_and_set(place, value);
}

static __always_inline u32 exchange_u32(u32 *place, u32 value)
{
	return __sync_lock_test_and_set(place, value);
}

static __always_inline u64 fetch_add(u64 *place, u64 value)
{
	return __sync_fetch_and_add(place, value);
}

static __always_inline u32 fetch_add_u32(u32 *place, u32 value)
{
	return __sync_fetch_and_add(place, value);
}

static __always_inline void set_bits(u64 *place, u64 bits)
{
	__sync_fetch_and_or(place, bits);
}

/* Unless it is set already. */
static __always_inline void set_once(u64 *place, u64 value)
{
	__sync_val_compare_and_swap(place, 0, value);
}

/* @return whether it was `old` */
static __always_inline bool replace(u64 *place, u64 old, u64 value)
{
	return __sync_val_compare_and_swap(place, old, value) == old;
}

#else

static __always_inline u64 exchange(u64 *place, u64 value)
{
	u64 old = *(volatile u64 *)place;

	*(volatile u64 *)place = value;
	return old;
}

static __always_inline u32 exchange_u32(u32 *place, u32 value)
{
	u32 old = *(volatile u32 *)place;

	*(volatile u32 *)place = value;
	return old;
}

static __always_inline u64 fetch_add(u64 *place, u64 value)
{
	u64 old = *(volatile u64 *)place;

	__sync_fetch_and_add(place, value);
	return old;
}

static __always_inline u32 fetch_add_u32(u32 *place, u32 value)
{
	u32 old = *(volatile u32 *)place;

	__sync_fetch_and_add(place, value);
	return old;
}

static __always_inline void set_bits(u64 *place, u64 bits)
{
	*(volatile u64 *)place |= bits;
}

static __always_inline void set_once(u64 *place, u64 value)
{
	*(volatile u64 *)place = value;
}

static __always_inline bool replace(u64 *place, u64 old, u64 value)
{
	if (*(volatile u64 *)place != old)
		return false;
	*(volatile u64 *)place = value;
	return true;
}

#endif

/*
 * bpf_loop, if the kernel has it: it does not fail as it is called here. @return whether that did it: the
 * verifier knows, and leaves out what would do it elsewhere
 */
#if MAY_LOOP
#define LOOP_IN_KERNEL(times, step, context)                                                                 \
	(bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_loop) &&                                      \
	 (bpf_loop(times, step, context, 0), true))
#else
#define LOOP_IN_KERNEL(times, step, context) false
#endif

/* Steps of a loop that the verifier works through, and how often they are called for. */
#define STEPS_AT_ONCE 8

/*
 * Defines name(key, times): calls step(i, context) for i from 0 on, until it returns other than 0; `find`
 * makes the context of the key, and returns false if there is none. Without bpf_loop the verifier works
 * through each step anew: here through few, once a program, in a global function. That takes numbers only, so
 * whatever a step leaves for the next one has to be in a map.
 */
#define DEFINE_LOOP(name, step, context_type, find)                                                          \
	__noinline u32 name##_some(u64 key, u32 from)                                                        \
	{                                                                                                    \
		context_type context = {};                                                                   \
                                                                                                             \
		/* A caller may leave out what is not used; the verifier asks for it. */                     \
		barrier_var(from);                                                                           \
		if (!find(&context, key))                                                                    \
			return 1;                                                                            \
		for (u32 i = 0; i < STEPS_AT_ONCE; i++)                                                      \
			if (step(from + i, &context))                                                        \
				return 1;                                                                    \
		return 0;                                                                                    \
	}                                                                                                    \
	static __always_inline void name(u64 key, u32 times)                                                 \
	{                                                                                                    \
		context_type context = {};                                                                   \
                                                                                                             \
		if (!find(&context, key) || LOOP_IN_KERNEL(times, step, &context))                           \
			return;                                                                              \
		for (u32 from = 0; from < (times) && !name##_some(key, from); from += STEPS_AT_ONCE)         \
			;                                                                                    \
	}

/* task_struct::state was renamed in Linux 5.14 (2f064a59a11f). */
struct task_struct___before_5_14 {
	long state;
} __attribute__((preserve_access_index));

static __always_inline long state_bits(struct task_struct *task)
{
	if (bpf_core_field_exists(struct task_struct, __state))
		return FIELD(task, __state);
	return BPF_CORE_READ((struct task_struct___before_5_14 *)task, state);
}

static __always_inline bool is_interruptible(struct task_struct *task)
{
	return state_bits(task) & TASK_INTERRUPTIBLE;
}

/* struct sock_cgroup_data held a tagged pointer until Linux 5.15 (8520e224f547). */
struct sock_cgroup_data___before_5_15 {
	u64 val;
} __attribute__((preserve_access_index));

struct sock___before_5_15 {
	struct sock_cgroup_data___before_5_15 sk_cgrp_data;
} __attribute__((preserve_access_index));

/* Id of the cgroup (v2) that the socket was made in; 0 if it is not known. */
static __always_inline u64 socket_group_id(struct sock *sk)
{
	struct cgroup *cgroup;
	u64 value;

	if (bpf_core_field_exists(struct sock_cgroup_data, cgroup))
		return BPF_CORE_READ(sk, sk_cgrp_data.cgroup, kn, id);
	value = BPF_CORE_READ((struct sock___before_5_15 *)sk, sk_cgrp_data.val);
	if (value & 1)
		return 0;
	cgroup = (struct cgroup *)(value & ~3ULL);
	return cgroup ? BPF_CORE_READ(cgroup, kn, id) : 0;
}
