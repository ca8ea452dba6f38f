/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Numbers of system calls, for programs and user space: of the architecture that is compiled for. */
#pragma once

#include <asm/unistd.h>

/* arm64 has only their successors: a number that no call can have, another one for each. */
#ifndef __NR_poll
#define __NR_poll (-1001)
#define __NR_select (-1002)
#define __NR_epoll_wait (-1003)
#define __NR_vfork (-1004)
#endif
