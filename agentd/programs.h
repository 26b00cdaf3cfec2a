/* SPDX-License-Identifier: MIT */
#ifndef AGENTD_PROGRAMS_H
#define AGENTD_PROGRAMS_H

/**
 * @file programs.h
 * The programs of the agent, which lie side by side.
 *
 * The messages between them have no versions: all are of one build.  An upgrade replaces the files under
 * processes that go on running, and what these would start then is of another build.
 */

#include <stdbool.h>
#include <sys/stat.h>

enum program {
	PROGRAM_MONITOR,
	PROGRAM_HEIR,
	PROGRAM_FRONT,
	PROGRAM_JUDGE,
	PROGRAM_RULES,
	PROGRAM_WORKER,
	PROGRAM_STORE,
	PROGRAM_HOOK,
	PROGRAM_ADAPTER,
	PROGRAM_TRACER,
	PROGRAM_CONNECT,
	PROGRAM_COUNT,
};

struct programs {
	char *path[PROGRAM_COUNT];
	struct stat at_start[PROGRAM_COUNT]; /**< What they were when they were found. */
};

/** Find them; once in a process.  @return 0, -errno: one of them is not there, or not executable. */
int programs_find(struct programs *ret);
/** Has one of them been replaced, changed or removed since they were found? */
bool programs_are_replaced(const struct programs *p);

/**
 * Watch their directory, so that a replacement is known before something is to be started.
 * @return a descriptor that becomes readable when one of its files may have been replaced; -errno.
 */
int programs_watch(void);
/** Read what made the descriptor readable; it does not say which file it was. */
void programs_watched(int fd);

#endif /* AGENTD_PROGRAMS_H */
