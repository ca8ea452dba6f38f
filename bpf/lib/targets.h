/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* The part of the target look-up that the programs share with user space. */
#pragma once

#include <linux/types.h>

#define TACHO_PORTS_PER_TARGET 16
#define TACHO_FILTER_BITS 4096
#define TACHO_EVENT_PATH 512

/* A target in the programs: a dense index, and an epoch that distinguishes two users of one index. */
struct target_ref {
	__u32 index;
	__u32 epoch;
};

struct target_filter {
	__u64 cgroups[TACHO_FILTER_BITS / 64];
	__u64 processes[TACHO_FILTER_BITS / 64];
};

/*
 * The one element of map `target_rules`. `generation` grows with every change of the maps: then sockets and
 * tasks drop the result of an earlier look-up.
 *
 * `filters` have the bit (id mod bits) set for every watched cgroup and process, and so reject most others
 * cheaply. The programs read the one that `filter` names and set bits in both, so that user space can rebuild
 * the other one and switch to it without a missing bit.
 */
struct target_rules {
	__u32 generation;
	__u32 process_rules;	/* non-zero while map process_targets may have entries */
	__u32 watch_executions; /* report every exec: it may start a process that a rule names */
	__u32 filter;
	__u64 self_top;	     /* where iterator `list_own_cgroups` begins; 0: nowhere */
	__u64 idle_limit_ns; /* a longer gap between operations is idleness, not an interval */
	__u32 client_rules;  /* non-zero while some target leaves clients out */
	__u32 shed;	     /* enum tacho_shed: the highest level of any target */
	struct target_filter filters[2];
};

/* The connections that are followed by the frames of HTTP/2. */
enum tacho_http2 {
	TACHO_HTTP2_AUTO, /* those that begin with its preface, or switch to it by an upgrade */
	TACHO_HTTP2_NEVER,
	TACHO_HTTP2_ALWAYS, /* older ones, too: from the first data that looks like a frame */
};

/*
 * What the programs do without for a target that costs more than it may (exporter/scrape/shedding.h). Each
 * level includes those before it.
 */
enum tacho_shed {
	TACHO_SHED_NOTHING,
	TACHO_SHED_INTERVALS, /* between operations */
	TACHO_SHED_POLLS,
	TACHO_SHED_ANATOMY,
	TACHO_SHED_STREAMS, /* of HTTP/2: turns count in their place */
	TACHO_SHED_SOCKETS, /* turns of all but a few connections, see socket_sampling.bpf.h */
	TACHO_SHED_LEVELS,
};

/* One element per index in map `target_settings`. */
struct target_settings {
	__u32 epoch;
	__u32 ports_count; /* 0: every port */
	__u16 ports[TACHO_PORTS_PER_TARGET];
	__u32 http2;	    /* enum tacho_http2: whether the frames of HTTP/2 connections are followed */
	__u32 exclude_node; /* a truth value: requests of the node itself are left out */
	__u32 since;	    /* generation; older state of sockets has not been watched all the time */
	__u32 shed;	    /* enum tacho_shed */
};

enum target_event_kind {
	TACHO_CGROUP_CREATED = 1,
	TACHO_CGROUP_REMOVED = 2,
	TACHO_LISTENER_OPENED = 3,
	TACHO_LISTENER_CLOSED = 4,
	TACHO_PROCESS_EXECUTED = 5,
	TACHO_PROCESS_EXITED = 6,
};

/* A record of ring buffer `target_events`. */
struct target_event {
	__u32 kind;
	__u32 tgid;
	__u64 cgroup;
	__u64 socket; /* of listeners, as in listener_record */
	__u32 network;
	__u16 family;
	__u16 port;		     /* 0 if the kernel has yet to choose one */
	__u32 port_free;	     /* as in listener_record */
	__u32 path_length;	     /* with the terminating NUL; TACHO_EVENT_PATH: maybe cut */
	__u32 has_children;	     /* a truth value, of who exits */
	char path[TACHO_EVENT_PATH]; /* of a cgroup, below the root of its hierarchy */
};

/* A cgroup that may be made again, as when a unit restarts; longer names are not awaited. */
struct awaited_cgroup {
	__u64 parent;
	char name[120];
};

/* A record of iterator `list_own_cgroups`; parents before children, a cgroup maybe twice. */
struct own_cgroup {
	__u64 id;
	__u64 parent;	/* 0: this is the root */
	char name[184]; /* of the directory; the root has none */
};

enum listener_kind {
	TACHO_LISTENER_TCP = 1,
	TACHO_LISTENER_UDP = 2,
	TACHO_LISTENER_UNIX = 3,
};

/* A record of iterator `list_listeners`, for every listening or bound server socket that a process holds
 * open.
 */
struct listener_record {
	__u64 cgroup; /* of the process */
	__u64 socket; /* the same for every process that shares the socket; not an address */
	__u32 tgid;
	__u32 network; /* inode number of the network namespace */
	__u32 kind;
	__u16 family;
	__u16 port;	 /* host order; 0 for unix */
	__u32 port_free; /* a truth value: the process asked for any port, the kernel chose this one */
	__u32 pad;
};

#define TACHO_EXECUTABLE 512

/* A record of the iterators `list_processes` and `list_process_names`, for every process that runs a file. */
struct process_record {
	__u32 tgid;
	__u32 parent;
	__u32 user;
	__u32 length;	 /* with the terminating NUL; 0 where the name could not be read */
	__u8 whole_path; /* truth values: else the name is only that of the file */
	__u8 deleted;	 /* since it was started; a path ends in " (deleted)" then */
	__u8 own;	 /* tacho itself */
	__u8 pad[5];
	char name[TACHO_EXECUTABLE];
};
