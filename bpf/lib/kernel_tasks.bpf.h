/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Threads, what they wait on, their files, cgroups and registers. */
#pragma once

#include "types.bpf.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct list_head {
	struct list_head *next;
};

struct wait_queue_head {
	struct list_head head;
};

struct wait_queue_entry {
	void *private;
	struct list_head entry;
};

struct poll_table_page;

struct poll_wqueues {
	struct poll_table_page *table;
	int inline_index;
};

struct poll_table_entry {
	unsigned int key;
	struct wait_queue_entry wait;
	struct wait_queue_head *wait_address;
};

struct upid {
	int nr;
};

struct pid {
	struct upid numbers[1];
};

struct super_block {
	unsigned long s_magic;
};

struct inode {
	struct super_block *i_sb;
	unsigned short i_mode;
};

struct qstr {
	const unsigned char *name;
};

struct hlist_bl_node {
	struct hlist_bl_node **pprev;
};

struct dentry {
	struct hlist_bl_node d_hash;
	struct dentry *d_parent;
	struct qstr d_name;
};

struct path {
	struct dentry *dentry;
};

struct file {
	struct inode *f_inode;
	void *private_data;
	struct path f_path;
};

struct mm_struct {
	struct file *exe_file;
};

struct fdtable {
	unsigned int max_fds;
	struct file **fd;
};

struct files_struct {
	struct fdtable *fdt;
};

typedef struct {
	unsigned int val;
} kuid_t;

struct cred {
	kuid_t uid;
};

struct kernfs_node {
	u64 id;
	const char *name;
};

struct cgroup_root {
	int hierarchy_id;
	unsigned int subsys_mask;
};

struct cgroup_subsys_state {
	struct cgroup *cgroup;
	struct cgroup_subsys_state *parent;
	struct list_head sibling;
	struct list_head children;
	unsigned int flags;
};

struct cgroup {
	struct cgroup_subsys_state self;
	struct kernfs_node *kn;
	struct cgroup_root *root;
};

/* Its numbers depend on the kernel's configuration. */
enum cgroup_subsys_id { memory_cgrp_id };

struct css_set {
	struct cgroup_subsys_state *subsys[1]; /* one a controller */
	struct cgroup *dfl_cgrp;
};

struct cpumask {
	unsigned long bits[1];
};

struct bpf_local_storage;
struct task_struct;

struct pid_namespace {
	struct task_struct *child_reaper;
};

struct nsproxy {
	struct pid_namespace *pid_ns_for_children;
};

struct thread_info {
	unsigned long flags;
};

struct sched_entity {
	u64 sum_exec_runtime;
	u64 prev_sum_exec_runtime;
};

struct sched_info {
	unsigned long long run_delay; /* ns that it has waited for a CPU, until it got the latest one */
};

struct task_struct {
	struct thread_info thread_info;
	void *stack;
	int pid;
	int tgid;
	unsigned int flags;
	unsigned int __state;
	int exit_state;
	int on_cpu;
	unsigned in_iowait : 1;
	struct sched_entity se;
	struct sched_info sched_info;
	int nr_cpus_allowed;
	struct cpumask cpus_mask;
	struct mm_struct *mm;
	struct task_struct *real_parent;
	struct list_head children;
	struct task_struct *group_leader;
	struct pid *thread_pid;
	const struct cred *real_cred;
	struct files_struct *files;
	struct nsproxy *nsproxy;
	struct css_set *cgroups;
	struct bpf_local_storage *bpf_storage;
};

/* The registers of a task that has entered the kernel. */
#if defined(__TARGET_ARCH_x86)
struct pt_regs {
	unsigned long r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di, orig_ax, ip, cs,
	    flags, sp, ss;
};
#define SYSCALL_NUMBER orig_ax
#define FIRST_ARGUMENT di
#elif defined(__TARGET_ARCH_arm64)
struct user_pt_regs {
	__u64 regs[31];
	__u64 sp;
	__u64 pc;
	__u64 pstate;
};
struct pt_regs {
	union {
		struct user_pt_regs user_regs;
	};
	u64 orig_x0;
	int syscallno;
};
#define SYSCALL_NUMBER syscallno
#define FIRST_ARGUMENT orig_x0
#endif

#pragma clang attribute pop

/* include/linux/sched.h */
enum {
	TASK_INTERRUPTIBLE = 1,
	TASK_DEAD = 0x80,
	TASK_WAKING = 0x200,
	TASK_NEW = 0x800,
	PF_EXITING = 0x4,
	PF_IO_WORKER = 0x10,
	PF_USER_WORKER = 0x4000,
	PF_KTHREAD = 0x200000,
};
