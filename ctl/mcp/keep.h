/* SPDX-License-Identifier: MIT */
#ifndef CTL_MCP_KEEP_H
#define CTL_MCP_KEEP_H

/**
 * @file keep.h
 * What is kept for later calls: answers of which not all was shown, and snapshots.  The oldest goes first when there is
 * no room, and everything after ten minutes.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mcp_tool;

#define KEEP_ITEMS	64
#define KEEP_BYTES_MAX	((size_t)64 << 20)
#define KEEP_MS		600000
#define KEEP_NAME_SIZE	24

struct kept {
	char name[KEEP_NAME_SIZE];    /**< "s1" for a snapshot, "c1" for an answer. */
	const struct mcp_tool *tool;  /**< Whose answer it is; NULL for a snapshot. */
	uint32_t pid;		      /**< Of a snapshot. */
	int status;		      /**< Of an answer: exit status of its command. */
	bool whole;		      /**< Of an answer: nothing was missing. */
	uint64_t until_ns;
	char *text;
	size_t size;
};

/** A zeroed object is empty. */
struct keep {
	struct kept items[KEEP_ITEMS]; /**< The oldest first. */
	size_t n, bytes;
	uint64_t last; /**< Number of the last name. */
};

/**
 * Keep a text.
 * @param item  all but name and until_ns; the text is taken, whatever is returned.
 * @return it, valid until the next call of this function; NULL: it is larger than all that is kept.
 */
const struct kept *keep_add(struct keep *k, const struct kept *item, uint64_t now_ns);
/** Find what is kept under a name; NULL: nothing, or not any more.  Valid until the next keep_add(). */
const struct kept *keep_find(struct keep *k, const char *name, uint64_t now_ns);
/** Free everything. */
void keep_deinit(struct keep *k);

#endif /* CTL_MCP_KEEP_H */
