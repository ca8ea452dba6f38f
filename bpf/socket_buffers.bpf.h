/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* The buffers of the running system call. The hooks run at its end; its arguments are still there then. */
#pragma once

#include "lib/compat.bpf.h"
#include "lib/system_calls.h"

/* Of struct msghdr in user space on 64 bit: a pointer and a padded int come before the vector. */
#define MSGHDR_IOV 16

/* In user space. */
struct call_buffers {
	const void *single; /* the only buffer; NULL: there is a vector */
	const void *vector; /* of struct iovec */
	u64 parts;	    /* of the vector */
};

/* False for calls that we do not know, or that have no buffer (sendfile, io_uring). */
static __always_inline bool find_call_buffers(struct call_buffers *buffers)
{
	struct pt_regs *regs = current_registers();
	const void *second = (const void *)PT_REGS_PARM2_CORE_SYSCALL(regs);
	u64 vector[2];

	buffers->single = NULL;
	switch (BPF_CORE_READ(regs, SYSCALL_NUMBER)) {
	case __NR_read:
	case __NR_write:
	case __NR_sendto:
	case __NR_recvfrom:
		buffers->single = second;
		return second;
	case __NR_sendmsg:
	case __NR_recvmsg:
		if (bpf_probe_read_user(vector, sizeof(vector), second + MSGHDR_IOV))
			return false;
		buffers->vector = (const void *)vector[0];
		buffers->parts = vector[1];
		return true;
	case __NR_readv:
	case __NR_writev:
		buffers->vector = second;
		buffers->parts = PT_REGS_PARM3_CORE_SYSCALL(regs);
		return true;
	default:
		return false;
	}
}

/* The first buffer; NULL if there is none. `bytes`, if asked for: how long it is, where a vector says so. */
static __always_inline const void *first_buffer(u64 *bytes)
{
	struct call_buffers buffers;
	u64 part[2]; /* struct iovec */

	if (!find_call_buffers(&buffers))
		return NULL;
	if (buffers.single)
		return buffers.single;
	if (bpf_probe_read_user(part, sizeof(part), buffers.vector))
		return NULL;
	if (bytes && *bytes > part[1])
		*bytes = part[1];
	return (const void *)part[0];
}

/* So many buffers of a vector are looked through: Netty hands a ticket over in pieces of 62 bytes. */
#define BUFFERS_FOLLOWED 16

/* Where `size` bytes stand together at `offset` of all buffers; NULL if they do not, or are not found. */
static __always_inline const void *bytes_of_call(u64 offset, u64 size)
{
	struct call_buffers buffers;
	u64 part[2]; /* struct iovec */

	if (!find_call_buffers(&buffers))
		return NULL;
	if (buffers.single)
		return buffers.single + offset;
	for (u32 i = 0; i < BUFFERS_FOLLOWED && i < buffers.parts; i++) {
		if (bpf_probe_read_user(part, sizeof(part), buffers.vector + i * sizeof(part)))
			return NULL;
		if (offset < part[1])
			return offset + size <= part[1] ? (const void *)part[0] + offset : NULL;
		offset -= part[1];
	}
	return NULL;
}

/* Room for the beginning of a buffer. */
#define SAMPLE_BYTES 512

/*
 * What is known of it so far stands beside it, and not on the stack: there the verifier would tell apart all
 * that it may be, in every step.
 */
struct sample {
	u8 bytes[2 * SAMPLE_BYTES]; /* the second half: what is copied past the first */
	u64 length;
	struct search {	    /* see socket_alpn.bpf.h */
		u64 window; /* the last eight bytes */
		u64 sought;
		u64 found; /* a truth value */
		u64 http2; /* the same: it is offered */
	} search;
	struct beginnings { /* see socket_pipelining.bpf.h */
		u64 last;   /* the last eight bytes, any digit as '0' */
		u64 low;    /* behind which bytes below 64 it may begin again, a bit each */
		u32 head;
		u32 digits;   /* 0xff: they are told apart */
		u32 commands; /* all of its lines, so far; 0: it has others */
		u32 found;
		u32 high;   /* a truth value: behind others, too */
		u32 behind; /* the first blank line, or line */
		u32 line;   /* which of the four bytes "\r\n\r\n" that takes */
	} beginnings;
	struct packets { /* see socket_broker_packets.bpf.h */
		/* All 0: between two packets. */
		union packet_watch {
			struct {
				u32 left; /* bytes of the packet that are still to come; in its
					     header: the number so far */
				u16 word; /* AMQP: class and method; NATS: fields of the line */
				u8 at;	  /* bytes of the header that were read; 0: it is complete */
				u8 kind;  /* of the packet, and flags */
			};
			u64 all;
		} watch;
		u32 protocol;
		u32 at;	    /* in the sample: what is followed next */
		u64 next;   /* in user space: what is behind the sample */
		u32 behind; /* so many bytes */
	} packets;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct sample);
} call_sample SEC(".maps");

static __always_inline void clear_sample(struct sample *sample)
{
	__builtin_memset(&sample->search, 0, sizeof(sample->search));
	__builtin_memset(&sample->beginnings, 0, sizeof(sample->beginnings));
}

/* Bytes of the beginning of `buffer`, which is so long; NULL if it cannot be read. */
static __always_inline struct sample *take_sample(const void *buffer, u64 length)
{
	u32 zero = 0;
	struct sample *sample = bpf_map_lookup_elem(&call_sample, &zero);

	if (!sample || !buffer || !length)
		return NULL;
	/* Kept in one register: verifiers up to 6.1 forget the bound of a copy. */
	barrier_var(length);
	if (length > SAMPLE_BYTES)
		length = SAMPLE_BYTES;
	if (bpf_probe_read_user(sample->bytes, length, buffer))
		return NULL;
	sample->length = length;
	clear_sample(sample);
	return sample;
}

/* The same of all buffers of the running call, which has read or sent so many bytes. */
static __always_inline struct sample *gather_sample(u64 bytes)
{
	u32 zero = 0;
	struct sample *sample = bpf_map_lookup_elem(&call_sample, &zero);
	struct call_buffers buffers;
	u64 part[2]; /* struct iovec */
	u64 known = 0;

	if (!sample || !find_call_buffers(&buffers))
		return NULL;
	if (buffers.single)
		return take_sample(buffers.single, bytes);
	for (u32 i = 0; i < BUFFERS_FOLLOWED && i < buffers.parts && known < bytes && known < SAMPLE_BYTES;
	     i++) {
		u64 at = known, length = bytes - known;

		if (bpf_probe_read_user(part, sizeof(part), buffers.vector + i * sizeof(part)))
			break;
		if (length > part[1])
			length = part[1];
		barrier_var(length);
		if (length > SAMPLE_BYTES)
			length = SAMPLE_BYTES;
		/* It is below that. Verifiers up to 6.1 have to see it right before the use. */
		barrier_var(at);
		at &= SAMPLE_BYTES - 1;
		if (bpf_probe_read_user(sample->bytes + at, length, (const void *)part[0]))
			break;
		known += length;
	}
	if (!known)
		return NULL;
	sample->length = known < SAMPLE_BYTES ? known : SAMPLE_BYTES;
	clear_sample(sample);
	return sample;
}

/* What a loop over its bytes needs. */
struct sample_scan {
	struct sample *sample;
};

static __always_inline bool find_sample(struct sample_scan *scan, u64 key)
{
	u32 index = key;

	scan->sample = bpf_map_lookup_elem(&call_sample, &index);
	return scan->sample;
}
