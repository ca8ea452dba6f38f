/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Which system calls poll, and which of them do not wait. */
#pragma once

#include "lib/kernel.bpf.h"

/* Numbers of the system calls; where the architecture lacks one, a number that no call can have. */
#if defined(__TARGET_ARCH_x86)
enum {
	NR_POLL = 7,
	NR_SELECT = 23,
	NR_EPOLL_WAIT = 232,
	NR_PSELECT6 = 270,
	NR_PPOLL = 271,
	NR_EPOLL_PWAIT = 281
};
#elif defined(__TARGET_ARCH_arm64)
enum {
	NR_POLL = -1001,
	NR_SELECT = -1002,
	NR_EPOLL_WAIT = -1003,
	NR_PSELECT6 = 72,
	NR_PPOLL = 73,
	NR_EPOLL_PWAIT = 22
};
#else
#error "unknown architecture"
#endif
enum { NR_EPOLL_PWAIT2 = 441 };

/* The timeout of a call: an int of milliseconds in a register, or a pointer to a structure of two longs. */
static __always_inline bool is_zero_pair(const void *user)
{
	u64 pair[2] = {};

	if (!user || bpf_probe_read_user(pair, sizeof(pair), user))
		return false;
	return !pair[0] && !pair[1];
}

static __always_inline bool is_poll_call(long number)
{
	return number == NR_EPOLL_WAIT || number == NR_EPOLL_PWAIT || number == NR_EPOLL_PWAIT2 ||
	       number == NR_POLL || number == NR_PPOLL || number == NR_SELECT || number == NR_PSELECT6;
}

static __always_inline bool is_nonblocking_call(struct pt_regs *regs, long number)
{
	switch (number) {
	case NR_EPOLL_WAIT:
	case NR_EPOLL_PWAIT:
		return (int)PT_REGS_PARM4_CORE_SYSCALL(regs) == 0;
	case NR_EPOLL_PWAIT2:
		return is_zero_pair((void *)PT_REGS_PARM4_CORE_SYSCALL(regs));
	case NR_POLL:
		return (int)PT_REGS_PARM3_CORE_SYSCALL(regs) == 0;
	case NR_PPOLL:
		return is_zero_pair((void *)PT_REGS_PARM3_CORE_SYSCALL(regs));
	default:
		return is_zero_pair((void *)PT_REGS_PARM5_CORE_SYSCALL(regs));
	}
}
