/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* The waits of a thread, and the target that they are counted for. */
#pragma once

#include "lib/loss.bpf.h"
#include "lib/own_time.bpf.h"
#include "poll_state.bpf.h"

/* A call that begins sooner after it was found under way is that one: the hook of its beginning ran late. */
#define ADOPTION_NS 1000000

/* Its wait may be over for long, unseen. From any context. */
static __noinline void forget_thread(struct poll_state *st)
{
	struct poll_shard *shared =
	    st->counted && !is_stale(&st->target) ? get_shard(&st->target, SHARED_SHARD) : NULL;

	if (shared) {
		add_atomic(&shared->threads, -1);
		if (st->started) {
			mark_shared_change(&shared->begin);
			if (st->ended) {
				observe_atomic(&shared->duration, st->ended - st->started);
				add_atomic(&shared->completed[TACHO_POLL_BLOCKED], 1);
			} else {
				add_atomic(&shared->waiters, -1);
			}
			add_atomic(&shared->started_ns, st->ended - st->started);
			mark_shared_change(&shared->end);
		}
	}
	st->counted = false;
	st->started = 0;
	st->ended = 0;
}

/*
 * Charges the thread to the target that it belongs to now; NULL if that is none. Once per thread and change.
 * `may_free`: not under a run queue's lock, where storage of a task cannot be given back.
 */
static __always_inline struct poll_state *
bind_thread(struct task_struct *task, const struct target_rules *rules, u64 cgroup, u32 tgid, bool may_free)
{
	struct target_ref *found = find_target(rules, cgroup, tgid);
	struct poll_state *st = state_of(task), first = {};
	struct poll_shard *shared;
	struct target_ref target;

	if (!found) {
		if (!st)
			return NULL;
		forget_thread(st);
		if (may_free || !STATE_GOES_WITH_TASK)
			drop_state(task);
		else
			st->generation = rules->generation - 1; /* it is looked up again each time */
		return NULL;
	}
	target = *found;
	if (!st)
		st = new_state(task, &first);
	if (!st) {
		count_loss(TACHO_LOST_TASK_STATE);
		return NULL;
	}
	if (was_empty_since(&st->target, st->generation))
		forget_thread(st);
	st->generation = rules->generation;
	st->owned_by_process =
	    !cgroup_may_be_watched(rules, cgroup) || !bpf_map_lookup_elem(&cgroup_targets, &cgroup);
	st->owner = st->owned_by_process ? tgid : cgroup;
	if (st->counted && st->target.index == target.index && st->target.epoch == target.epoch)
		return st;
	forget_thread(st);
	st->target = target;
	shared = get_shard(&target, SHARED_SHARD);
	if (shared) {
		add_atomic(&shared->threads, 1);
		st->counted = true;
	}
	return st;
}

static __always_inline void end_wait(struct poll_state *st, struct poll_shard *shard, u32 outcome, u64 now)
{
	u64 started = st->started;

	st->started = 0;
	mark_change(&shard->begin);
	observe(&shard->duration, now - started);
	if (outcome < TACHO_POLL_OUTCOMES)
		add(&shard->completed[outcome], 1);
	add(&shard->waiters, -1);
	add(&shard->started_ns, -started);
	mark_change(&shard->end);
	end_own_time(&shard->own_ns, now, now);
}

static __always_inline void begin_wait(struct poll_state *st, const struct target_rules *rules,
				       bool nonblocking, u32 shard_index)
{
	struct poll_shard *shard = get_shard(&st->target, shard_index);
	bool shed = is_shed(rules, &st->target, TACHO_SHED_POLLS);
	u64 now;

	/* What has begun is seen through to its end. */
	if (!shard || (shed && !st->started))
		return;
	now = bpf_ktime_get_ns();
	if (st->started) {
		if (shard_index == SHARED_SHARD || !st->adopted || now - st->started < ADOPTION_NS)
			return;
		/* An older wait whose end was not seen: fexit misses the calls that it was not there for. */
		end_wait(st, shard, TACHO_POLL_READY, now);
	}
	/* The walk over the tasks may have found the thread at the same time. */
	if (shed || !replace(&st->started, 0, now))
		return;
	st->nonblocking = nonblocking;
	st->adopted = shard_index == SHARED_SHARD;
	if (shard_index == SHARED_SHARD) {
		mark_shared_change(&shard->begin);
		add_atomic(&shard->waiters, 1);
		add_atomic(&shard->started_ns, now);
		mark_shared_change(&shard->end);
	} else {
		mark_change(&shard->begin);
		add(&shard->waiters, 1);
		add(&shard->started_ns, now);
		mark_change(&shard->end);
		end_own_time(&shard->own_ns, now, now);
	}
}
