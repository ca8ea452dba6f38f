/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* What the first four bytes of a message may be the beginning of. */
#pragma once

#include "lib/compat.bpf.h"

/* The methods of HTTP, by their first four bytes: each has a reply (RFC 9110, 9.1). */
static __always_inline bool is_http_method(u32 head)
{
	switch (head) {
	case 0x20544547: /* "GET " */
	case 0x44414548: /* HEAD */
	case 0x54534f50: /* POST */
	case 0x20545550: /* "PUT " */
	case 0x454c4544: /* DELETE */
	case 0x4954504f: /* OPTIONS */
	case 0x43544150: /* PATCH */
		return true;
	}
	return false;
}

/* What four bytes may be the beginning of; OPTIONS is a method of more than one protocol. */
enum beginning_kind {
	KIND_HTTP = 1,
	KIND_SESSION = 2, /* SIP (RFC 3261), RTSP (RFC 2326) */
	KIND_NAMED = 4,	  /* SIP names the method again, in CSeq (RFC 3261, 8.1.1.5) */
	KIND_QUERY = 8,	  /* a line of memcached that has no data of its own behind it */
	KIND_COMMAND = 16 /* any line of memcached */
};
#define KIND_METHODS (KIND_HTTP | KIND_SESSION)

/* A global function: the verifier does not go on with each of these beginnings. */
__noinline u32 kinds_of_beginning(u32 head)
{
	switch (head) {
	case 0x4954504f: /* OPTIONS */
		return KIND_HTTP | KIND_SESSION | KIND_NAMED;
	case 0x49564e49: /* INVITE */
	case 0x20455942: /* "BYE " */
	case 0x434e4143: /* CANCEL */
	case 0x49474552: /* REGISTER */
	case 0x53425553: /* SUBSCRIBE */
	case 0x49544f4e: /* NOTIFY */
	case 0x4f464e49: /* INFO */
	case 0x41445055: /* UPDATE */
	case 0x45464552: /* REFER */
	case 0x43415250: /* PRACK */
	case 0x43534544: /* DESCRIBE */
	case 0x55544553: /* SETUP */
	case 0x59414c50: /* PLAY */
	case 0x53554150: /* PAUSE */
	case 0x52414554: /* TEARDOWN */
	case 0x5f544547: /* GET_PARAMETER */
		return KIND_SESSION | KIND_NAMED;
	/* Their bodies are any text. ACK has no reply. */
	case 0x5353454d: /* MESSAGE */
	case 0x4c425550: /* PUBLISH */
		return KIND_NAMED;
	case 0x20746567: /* "get " */
	case 0x73746567: /* gets */
	case 0x20746167: /* "gat " */
	case 0x73746167: /* gats */
	case 0x656c6564: /* delete */
	case 0x72636e69: /* incr */
	case 0x72636564: /* decr */
	case 0x63756f74: /* touch */
		return KIND_QUERY | KIND_COMMAND;
	case 0x20746573: /* "set " */
	case 0x20646461: /* "add " */
	case 0x6c706572: /* replace */
	case 0x65707061: /* append */
	case 0x70657270: /* prepend */
	case 0x20736163: /* "cas " */
		return KIND_COMMAND;
	}
	switch (head & 0xffffff) {
	case 0x20676d: /* "mg ": get */
	case 0x20646d: /* "md ": delete */
	case 0x20616d: /* "ma ": count */
	case 0x0d6e6d: /* mn: nothing, the reply to which tells that all before was answered */
		return KIND_QUERY | KIND_COMMAND;
	case 0x20736d: /* "ms ": set */
		return KIND_COMMAND;
	}
	return is_http_method(head) ? KIND_HTTP : 0;
}
