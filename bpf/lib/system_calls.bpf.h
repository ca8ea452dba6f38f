/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Numbers of the system calls that programs know; a number that no call can have where an architecture lacks
 * one.
 */
#pragma once

#if defined(__TARGET_ARCH_x86)
enum {
	NR_READ = 0,
	NR_WRITE = 1,
	NR_POLL = 7,
	NR_READV = 19,
	NR_WRITEV = 20,
	NR_SELECT = 23,
	NR_SENDTO = 44,
	NR_RECVFROM = 45,
	NR_SENDMSG = 46,
	NR_RECVMSG = 47,
	NR_EPOLL_WAIT = 232,
	NR_PSELECT6 = 270,
	NR_PPOLL = 271,
	NR_EPOLL_PWAIT = 281,
	NR_SENDMMSG = 307
};
#elif defined(__TARGET_ARCH_arm64)
enum {
	NR_POLL = -1001,
	NR_SELECT = -1002,
	NR_EPOLL_WAIT = -1003,
	NR_EPOLL_PWAIT = 22,
	NR_READ = 63,
	NR_WRITE = 64,
	NR_READV = 65,
	NR_WRITEV = 66,
	NR_PSELECT6 = 72,
	NR_PPOLL = 73,
	NR_SENDTO = 206,
	NR_RECVFROM = 207,
	NR_SENDMSG = 211,
	NR_RECVMSG = 212,
	NR_SENDMMSG = 269
};
#else
#error "unknown architecture"
#endif
enum { NR_EPOLL_PWAIT2 = 441 };
