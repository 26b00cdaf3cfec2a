/* SPDX-License-Identifier: MIT */
#ifndef MONITOR_PROGRAMS_H
#define MONITOR_PROGRAMS_H

/**
 * @file programs.h
 * The programs that this process starts, which lie beside its own.
 *
 * The messages between them have no versions: all are of one build.  An upgrade replaces the files under a
 * monitor that goes on running, and what it would start then is of another build.
 */

#include <limits.h>
#include <stdbool.h>
#include <sys/stat.h>

struct programs {
	char front[PATH_MAX], worker[PATH_MAX], store[PATH_MAX], rules[PATH_MAX], hook[PATH_MAX],
		adapter[PATH_MAX], tracer[PATH_MAX], connect[PATH_MAX], judge[PATH_MAX];
	struct stat at_start[9]; /**< What they were when they were found, in this order. */
};

/** Find them.  @return 0, -errno: one of them is not there, or not executable. */
int programs_find(struct programs *ret);
/** Has one of them been replaced, changed or removed since they were found? */
bool programs_are_replaced(const struct programs *p);

/**
 * Watch their directory, so that a replacement is known before something is to be started.
 * @return a descriptor that becomes readable when one of its files may have been replaced; -errno.
 */
int programs_watch(const struct programs *p);
/** Read what made the descriptor readable; it does not say which file it was. */
void programs_watched(int fd);

#endif /* MONITOR_PROGRAMS_H */
