// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/*
 * Owns the look-up maps of lib/targets.bpf.h and reports to user space what may change the set of targets:
 * cgroups that are made and removed, listening sockets, processes. These events are rare; they are the only
 * ones that go through a ring buffer.
 */
#include "lib/compat.bpf.h"
#include "lib/loss.bpf.h"
#include "targets_processes.bpf.h"
#include "targets_self.bpf.h"

char LICENSE[] SEC("license") = "GPL";

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1024 * 1024); /* 1 800 events: a node that starts 500 pods at once */
} target_events SEC(".maps");

static __always_inline struct target_event *new_event(u32 kind, u64 cgroup, u32 tgid)
{
	struct target_event *event = bpf_ringbuf_reserve(&target_events, sizeof(*event), 0);

	if (!event) {
		count_loss(TACHO_LOST_RING_FULL);
		return NULL;
	}
	event->kind = kind;
	event->cgroup = cgroup;
	event->tgid = tgid;
	event->socket = 0;
	event->network = 0;
	event->family = 0;
	event->port = 0;
	event->port_free = 0;
	event->path_length = 0;
	event->has_children = 0;
	event->path[0] = 0;
	return event;
}

static __always_inline void send_event(u32 kind, u64 cgroup, u32 tgid)
{
	struct target_event *event = new_event(kind, cgroup, tgid);

	if (event)
		bpf_ringbuf_submit(event, 0);
}

static __always_inline bool on_watched_hierarchy(struct cgroup *cgrp)
{
	if (cgroup_v1)
		return BPF_CORE_READ(cgrp, root, subsys_mask) & (1U << MEMORY_CONTROLLER);
	return BPF_CORE_READ(cgrp, root, hierarchy_id) == 0;
}

static __always_inline void send_cgroup_event(u32 kind, u64 id, const char *path)
{
	struct target_event *event = new_event(kind, id, 0);
	long length;

	if (!event)
		return;
	length = bpf_probe_read_kernel_str(event->path, sizeof(event->path), path);
	event->path_length = length > 0 ? length : 0;
	bpf_ringbuf_submit(event, 0);
}

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 4096);
	__type(key, struct awaited_cgroup);
	__type(value, struct target_ref);
} awaited_cgroups SEC(".maps");

static __always_inline struct target_ref *find_awaited(struct cgroup *cgrp, u64 parent)
{
	struct awaited_cgroup key = {.parent = parent};
	struct target_ref *found;

	if (bpf_probe_read_kernel_str(key.name, sizeof(key.name), BPF_CORE_READ(cgrp, kn, name)) <= 0)
		return NULL;
	found = bpf_map_lookup_elem(&awaited_cgroups, &key);
	return found && !is_stale(found) ? found : NULL;
}

/* What is marked in one filter only is missed when user space passes over to the other. */
static __always_inline void mark_cgroup(struct target_rules *rules, u64 id)
{
	u32 bit = id % TACHO_FILTER_BITS;

	set_bits(&rules->filters[0].cgroups[bit / 64], 1ULL << (bit % 64));
	set_bits(&rules->filters[1].cgroups[bit / 64], 1ULL << (bit % 64));
}

static __always_inline void mark_process(struct target_rules *rules, u32 tgid)
{
	u32 bit = tgid % TACHO_FILTER_BITS;

	set_bits(&rules->filters[0].processes[bit / 64], 1ULL << (bit % 64));
	set_bits(&rules->filters[1].processes[bit / 64], 1ULL << (bit % 64));
}

/*
 * A new cgroup belongs to its parent's target at once, or to the one whose cgroup had its place before:
 * nothing that starts in it is missed.
 */
static __always_inline void inherit_target(struct cgroup *cgrp, u64 id)
{
	struct target_rules *rules = get_rules();
	struct cgroup_subsys_state *parent = FIELD(cgrp, self.parent);
	struct target_ref *found, target;
	u64 parent_id;

	if (!rules || !parent)
		return;
	parent_id = BPF_CORE_READ(parent, cgroup, kn, id);
	found = find_awaited(cgrp, parent_id);
	if (!found)
		found = bpf_map_lookup_elem(&cgroup_targets, &parent_id);
	if (!found)
		return;
	target = *found;
	if (bpf_map_update_elem(&cgroup_targets, &id, &target, BPF_ANY)) {
		count_loss(TACHO_LOST_MAP_FULL);
		return;
	}
	mark_cgroup(rules, id);
}

static __always_inline void on_cgroup_created(struct cgroup *cgrp, const char *path)
{
	u64 id;

	if (!on_watched_hierarchy(cgrp))
		return;
	id = BPF_CORE_READ(cgrp, kn, id);
	inherit_target(cgrp, id);
	send_cgroup_event(TACHO_CGROUP_CREATED, id, path);
}

static __always_inline void on_cgroup_removed(struct cgroup *cgrp, const char *path)
{
	u64 id;

	if (!on_watched_hierarchy(cgrp))
		return;
	id = BPF_CORE_READ(cgrp, kn, id);
	bpf_map_delete_elem(&cgroup_targets, &id);
	send_cgroup_event(TACHO_CGROUP_REMOVED, id, path);
}

/* A child of a watched process serves the same sockets (pre-fork workers) until it executes something else.
 */
static __always_inline void on_fork(struct task_struct *parent, struct task_struct *child)
{
	struct target_rules *rules = get_rules();
	u32 parent_tgid = FIELD(parent, tgid);
	u32 tgid = FIELD(child, tgid);
	struct target_ref *found, target;

	if (!rules || !rules->process_rules || tgid == parent_tgid)
		return;
	found = bpf_map_lookup_elem(&process_targets, &parent_tgid);
	if (!found) {
		/* The number may have belonged to a watched process that is gone. */
		bpf_map_delete_elem(&process_targets, &tgid);
		return;
	}
	target = *found;
	if (bpf_map_update_elem(&process_targets, &tgid, &target, BPF_ANY))
		count_loss(TACHO_LOST_MAP_FULL);
	else
		mark_process(rules, tgid);
}

static __always_inline void on_exec(struct task_struct *task)
{
	struct target_rules *rules = get_rules();
	u32 tgid = FIELD(task, tgid);
	bool watched;

	if (!rules || !rules->process_rules)
		return;
	watched = !bpf_map_delete_elem(&process_targets, &tgid);
	/* It may have kept sockets that remember the target. */
	if (watched)
		__sync_fetch_and_add(&rules->generation, 1);
	if (watched || rules->watch_executions)
		send_event(TACHO_PROCESS_EXECUTED, cgroup_of(task), tgid);
}

/* Of a task that exits: they get another parent later (exit_notify() in kernel/exit.c). */
static __always_inline bool has_children(struct task_struct *task)
{
	u64 list = 0;

	bpf_probe_read_kernel(&list, sizeof(list), &task);
	list += bpf_core_field_offset(struct task_struct, children);
	return (u64)BPF_CORE_READ(task, children.next) != list;
}

static __always_inline void on_exit(struct task_struct *task)
{
	struct target_rules *rules = get_rules();
	u32 tgid = FIELD(task, tgid);
	struct target_event *event;

	if (!rules || !rules->process_rules || (u32)FIELD(task, pid) != tgid)
		return;
	if (!bpf_map_lookup_elem(&process_targets, &tgid))
		return;
	event = new_event(TACHO_PROCESS_EXITED, cgroup_of(task), tgid);
	if (!event)
		return;
	event->has_children = has_children(task);
	bpf_ringbuf_submit(event, 0);
}

static __always_inline void on_state_change(struct sock *sk, int old_state, int new_state)
{
	bool opened = new_state == TCP_LISTEN;
	struct target_event *event;

	if (!opened && (old_state != TCP_LISTEN || new_state != TCP_CLOSE))
		return;
	event = new_event(opened ? TACHO_LISTENER_OPENED : TACHO_LISTENER_CLOSED, current_cgroup(),
			  current_tgid());
	if (!event)
		return;
	event->socket = (u64)sk;
	event->network = BPF_CORE_READ(sk, __sk_common.skc_net.net, ns.inum);
	event->family = FIELD(sk, __sk_common.skc_family);
	event->port = FIELD(sk, __sk_common.skc_num);
	event->port_free = !chose_port(sk);
	bpf_ringbuf_submit(event, 0);
}

ON_TRACEPOINT(cgroup_mkdir, target_cgroup_created, on_cgroup_created(cgrp, path), struct cgroup *cgrp,
	      const char *path)
ON_TRACEPOINT(cgroup_rmdir, target_cgroup_removed, on_cgroup_removed(cgrp, path), struct cgroup *cgrp,
	      const char *path)
ON_TRACEPOINT(sched_process_fork, target_process_forked, on_fork(parent, child), struct task_struct *parent,
	      struct task_struct *child)
ON_TRACEPOINT(sched_process_exec, target_process_executed, on_exec(task), struct task_struct *task)
ON_TRACEPOINT(sched_process_exit, target_process_exited, on_exit(task), struct task_struct *task)
ON_TRACEPOINT(inet_sock_set_state, target_listener_changed, on_state_change(sk, old_state, new_state),
	      struct sock *sk, int old_state, int new_state)

static __always_inline u32 listener_kind(struct sock *sk)
{
	u16 family = FIELD(sk, __sk_common.skc_family);
	u8 state = FIELD(sk, __sk_common.skc_state);

	if (family == AF_UNIX)
		return state == TCP_LISTEN ? TACHO_LISTENER_UNIX : 0;
	if (family != AF_INET && family != AF_INET6)
		return 0;
	if (FIELD(sk, sk_type) == SOCK_STREAM)
		return state == TCP_LISTEN ? TACHO_LISTENER_TCP : 0;
	/* A datagram socket that has a port and no peer serves whoever writes to it. */
	if (FIELD(sk, sk_type) == SOCK_DGRAM)
		return state == TCP_CLOSE && FIELD(sk, __sk_common.skc_num) ? TACHO_LISTENER_UDP : 0;
	return 0;
}

SEC("iter/task_file")
int list_listeners(struct bpf_iter__task_file *ctx)
{
	struct task_struct *task = ctx->task;
	struct file *file = ctx->file;
	struct listener_record record = {};
	struct sock *sk;

	if (!task || !file)
		return 0;
	sk = sock_of_file(file);
	if (!sk)
		return 0;
	record.kind = listener_kind(sk);
	if (!record.kind)
		return 0;
	record.cgroup = cgroup_of(task);
	record.socket = (u64)sk;
	record.tgid = FIELD(task, tgid);
	record.network = BPF_CORE_READ(sk, __sk_common.skc_net.net, ns.inum);
	record.family = FIELD(sk, __sk_common.skc_family);
	record.port = record.kind == TACHO_LISTENER_UNIX ? 0 : FIELD(sk, __sk_common.skc_num);
	record.port_free = !chose_port(sk);
	bpf_seq_write(ctx->meta->seq, &record, sizeof(record));
	return 0;
}
