/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Why an event was not counted; index of per-CPU map `lost_events` of every object. */
#pragma once

enum loss_reason {
	TACHO_LOST_SOCKET_STATE,  /* no socket storage: out of memory or the socket's option memory is used up
				   */
	TACHO_LOST_TASK_STATE,	  /* no task storage: out of memory or busy */
	TACHO_LOST_RING_FULL,	  /* ring buffer full */
	TACHO_LOST_MAP_FULL,	  /* hash map full */
	TACHO_LOST_STALE_TARGET,  /* a target's block was gone when its event came */
	TACHO_LOST_PEER_OVERFLOW, /* a peer beyond max_peers: its calls are counted under `other` */
	TACHO_LOST_HTTP2_STEP,	  /* bytes of a followed HTTP/2 connection that are not a frame, or were not
				     found */
	TACHO_LOST_HTTP2_STREAM,  /* more open streams than can be tracked: one reply is not counted */
	TACHO_LOSS_REASONS,
};
