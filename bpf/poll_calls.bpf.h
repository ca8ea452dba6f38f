/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* The system calls that poll, and those of them that do not wait. */
#pragma once

#include "lib/compat.bpf.h"
#include "lib/system_calls.h"

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
	return number == __NR_epoll_wait || number == __NR_epoll_pwait || number == __NR_epoll_pwait2 ||
	       number == __NR_poll || number == __NR_ppoll || number == __NR_select ||
	       number == __NR_pselect6;
}

static __always_inline bool is_nonblocking_call(struct pt_regs *regs, long number)
{
	switch (number) {
	case __NR_epoll_wait:
	case __NR_epoll_pwait:
		return (int)SYSCALL_ARGUMENT(regs, 4) == 0;
	case __NR_epoll_pwait2:
		return is_zero_pair((void *)SYSCALL_ARGUMENT(regs, 4));
	case __NR_poll:
		return (int)SYSCALL_ARGUMENT(regs, 3) == 0;
	case __NR_ppoll:
		return is_zero_pair((void *)SYSCALL_ARGUMENT(regs, 3));
	default:
		return is_zero_pair((void *)SYSCALL_ARGUMENT(regs, 5));
	}
}
