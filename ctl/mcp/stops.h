/* SPDX-License-Identifier: MIT */
#ifndef CTL_MCP_STOPS_H
#define CTL_MCP_STOPS_H

/**
 * @file stops.h
 * For how long calls have stopped a process: an assistant that asks again and again must not slow it down.  Once they
 * have stopped it for three seconds of a minute, which is a twentieth, none may before that minute is over.  Pure
 * functions of the times that are given.
 */

#include <stddef.h>
#include <stdint.h>

#define STOPS_WINDOW_MS 60000
#define STOPS_SHARE	20
#define STOPS_MAX	256 /**< Most stops that are remembered; of one that is forgotten nothing is counted. */

/** In the place of a process: any process, as where nobody knows which a call stops. */
#define STOPS_ANY UINT32_MAX

/** A zeroed object remembers nothing. */
struct stops {
	struct {
		uint64_t at_ns, stopped_ns;
		uint32_t pid;
	} list[STOPS_MAX];
	size_t next;
};

/** Remember that a process was stopped. */
void stops_add(struct stops *s, uint32_t pid, uint64_t stopped_ns, uint64_t now_ns);
/** @return 0: the process may be stopped now; else the milliseconds until it may. */
uint32_t stops_wait_ms(const struct stops *s, uint32_t pid, uint64_t now_ns);

#endif /* CTL_MCP_STOPS_H */
