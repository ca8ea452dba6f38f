/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* What every program needs of libbpf and of the types of the user side. */
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
