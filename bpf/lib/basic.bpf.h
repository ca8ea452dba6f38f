/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * The abilities of kernels and hooks differ, so the programs are compiled twice, sched a third
 * time (task_state.bpf.h).
 *
 * The full variant follows pointers that the verifier knows, keeps state in the storage of sockets and tasks
 * and uses atomics that return the old value: Linux 5.13 and later, in BTF tracepoints, fentry and fexit.
 * The fallback variant, with TACHO_BASIC defined, is for Linux 5.10 and for kprobes everywhere:
 *   - members are read by bpf_probe_read_kernel (+10 ns each),
 *   - state is in hash maps (a look-up 5 ns instead of 3, making and dropping one 72 ns),
 *   - old values are read before they are changed: with two CPUs at once in the same place a sum of intervals
 *     can be off by one, and two datagrams can take one slot.
 */
#pragma once

#include "lib/kernel.bpf.h"

#define TRACEPOINT_PROGRAM(section, name, call, arguments...)                                                \
	SEC(section)                                                                                         \
	int BPF_PROG(name, ##arguments)                                                                      \
	{                                                                                                    \
		call;                                                                                        \
		return 0;                                                                                    \
	}

#ifdef TACHO_BASIC

#define FIELD(pointer, member) BPF_CORE_READ(pointer, member)

/* A second program for kernels without type information of their own (--btf.path), which know no tp_btf. */
#define ON_TRACEPOINT(event, name, call, arguments...)                                                       \
	TRACEPOINT_PROGRAM("tp_btf/" #event, name, call, ##arguments)                                        \
	TRACEPOINT_PROGRAM("raw_tp/" #event, raw_##name, call, ##arguments)

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

/* Whether the kernel knows its own types: what helpers return is typed. Set before loading. */
const volatile __u32 kernel_types = 1;

/* bpf_get_current_task_btf and bpf_task_pt_regs: Linux 5.11, 5.15. */
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

/* bpf_sock_from_file: Linux 5.11. */
static __always_inline struct sock *sock_of_file(struct file *file)
{
	struct socket *socket;

	if (BPF_CORE_READ(file, f_inode, i_sb, s_magic) != SOCKFS_MAGIC)
		return NULL;
	socket = FIELD(file, private_data);
	return socket ? FIELD(socket, sk) : NULL;
}

/* Linux 5.10 refuses a program in which bpf_loop stands, also where that is never reached. */
#define LOOP_IN_KERNEL(times, step, context) false

#else

#define FIELD(pointer, member) ((pointer)->member)

/*
 * Linux 5.17 has bpf_loop, which does not fail as it is called here. @return whether that did it: the
 * verifier knows, and leaves out what would do it elsewhere
 */
#define LOOP_IN_KERNEL(times, step, context)                                                                 \
	(bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_loop) &&                                      \
	 (bpf_loop(times, step, context, 0), true))

#define ON_TRACEPOINT(event, name, call, arguments...)                                                       \
	TRACEPOINT_PROGRAM("tp_btf/" #event, name, call, ##arguments)

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

static __always_inline struct task_struct *current_task(void)
{
	return bpf_get_current_task_btf();
}

static __always_inline struct pt_regs *task_registers(struct task_struct *task)
{
	return (struct pt_regs *)bpf_task_pt_regs(task);
}

static __always_inline struct pt_regs *current_registers(void)
{
	return task_registers(current_task());
}

static __always_inline struct sock *sock_of_file(struct file *file)
{
	struct socket *socket = bpf_sock_from_file(file);

	return socket ? socket->sk : NULL;
}

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
