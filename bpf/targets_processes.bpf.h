/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * The files that processes run. /proc/PID/exe of another user's process may be read only with CAP_SYS_PTRACE;
 * an iterator has access to the file itself.
 */
#pragma once

#include "lib/targets.bpf.h"

/* The record that is being written: one reader goes through the iterator at a time. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct process_record);
} process_record SEC(".maps");

/* As d_unlinked() in include/linux/dcache.h: it has left its directory. */
static __always_inline bool is_deleted(struct file *file)
{
	struct dentry *entry = BPF_CORE_READ(file, f_path.dentry);

	return !BPF_CORE_READ(entry, d_hash.pprev) && BPF_CORE_READ(entry, d_parent) != entry;
}

/* @return the record, but for the name; NULL for threads, and for what runs no file */
static __always_inline struct process_record *new_process_record(struct task_struct *task)
{
	struct process_record *record;
	struct file *file;
	u32 zero = 0;

	if (!task || BPF_CORE_READ(task, pid) != BPF_CORE_READ(task, tgid))
		return NULL;
	file = BPF_CORE_READ(task, mm, exe_file);
	if (!file)
		return NULL;
	record = bpf_map_lookup_elem(&process_record, &zero);
	if (!record)
		return NULL;
	record->tgid = BPF_CORE_READ(task, tgid);
	record->parent = BPF_CORE_READ(task, real_parent, tgid);
	record->user = BPF_CORE_READ(task, real_cred, uid.val);
	record->deleted = is_deleted(file);
	record->own = record->tgid == current_tgid();
	record->length = 0;
	return record;
}

static __always_inline void read_file_name(struct process_record *record, struct task_struct *task)
{
	const unsigned char *name = BPF_CORE_READ(task, mm, exe_file, f_path.dentry, d_name.name);
	long length = bpf_probe_read_kernel_str(record->name, sizeof(record->name), name);

	record->whole_path = 0;
	record->length = length > 0 ? length : 0;
}

/* With the whole path; from Linux 5.11 on. */
SEC("iter/task")
int list_processes(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct process_record *record = new_process_record(task);
	struct mm_struct *memory;
	struct file *file;
	long length;

	if (!task || !record)
		return 0;
	memory = task->mm;
	if (!memory)
		return 0;
	file = memory->exe_file;
	if (!file)
		return 0;
	length = bpf_d_path(&file->f_path, record->name, sizeof(record->name));
	if (length > 0) {
		record->whole_path = 1;
		record->length = length;
	} else { /* too long */
		read_file_name(record, task);
	}
	bpf_seq_write(ctx->meta->seq, record, sizeof(*record));
	return 0;
}

/* With the last component of the path. */
SEC("iter/task")
int list_process_names(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct process_record *record = new_process_record(task);

	if (!task || !record)
		return 0;
	read_file_name(record, task);
	bpf_seq_write(ctx->meta->seq, record, sizeof(*record));
	return 0;
}
