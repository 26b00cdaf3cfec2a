/* SPDX-License-Identifier: MIT */
#ifndef RULES_DISCOVER_H
#define RULES_DISCOVER_H

/**
 * @file discover.h
 * Tells when somebody opens a GPU device, without asking: inotify(7) on the device nodes.
 *
 * What is watched are inodes.  A node of the same device in another file system, as container
 * runtimes make them in a /dev of their own, is another inode, and opening it says nothing here.
 */

#include <stdbool.h>
#include <stddef.h>

#define DISCOVER_NODES_MAX 4

struct discover_node {
	const char *path; /**< Borrowed. */
	int wd;		  /**< Watch on the node; -1: it is not there (or may not be read). */
	int dir_wd;	  /**< Watch on its directory, for its coming; -1: none. */
};

struct discover {
	int fd; /**< For poll(); -1: nothing is watched. */
	struct discover_node nodes[DISCOVER_NODES_MAX];
	size_t n;
};

#define DISCOVER_NULL { .fd = -1 }

/** Watch @p n nodes, also those that are not there yet.  Logs what cannot be.  @return 0, -errno. */
int discover_start(struct discover *d, const char *const paths[], size_t n);
void discover_stop(struct discover *d);
/** Take what happened.  @return whether a node was opened, or came. */
bool discover_read(struct discover *d);

#endif /* RULES_DISCOVER_H */
