/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
#pragma once

#include "lib/kernel.bpf.h"
#include "lib/loss.h"

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, TACHO_LOSS_REASONS);
	__type(key, __u32);
	__type(value, __u64);
} lost_events SEC(".maps");

static __always_inline void count_loss(__u32 reason)
{
	__u64 *lost = bpf_map_lookup_elem(&lost_events, &reason);

	if (lost)
		__sync_fetch_and_add(lost, 1);
}
