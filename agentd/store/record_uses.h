/* SPDX-License-Identifier: MIT */
#ifndef STORE_RECORD_USES_H
#define STORE_RECORD_USES_H

/**
 * @file record_uses.h
 * What the monitor is told of a client that reads or changes records of others.
 *
 * Of each method and record one message in ten seconds, and no more than RECORD_USES_PER_SECOND in all; the next
 * message counts the others.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "agentd/ipc/monitor_worker.h"

#define RECORD_USES_PER_SECOND 20

struct record_uses {
	struct ipc_record_used last; /**< Told last, */
	uint64_t last_ns;	     /**< at this time. */
	struct ipc_record_used untold; /**< The last one that was only counted; `more`: how many before it, and */
	bool has_untold;	       /**< whether there is any. */
	uint64_t since_ns; /**< In the second that began then */
	uint32_t n;	   /**< so many were told. */
	int fd;		   /**< Socket to the monitor, borrowed. */
};

/**
 * The client may do something with a record of another user, and does.
 * @param record  NULL: with several.
 * @param uid     Whose it is; (uid_t)-1: there are several.
 * @param now     Monotonic ns.
 */
void record_uses_tell(struct record_uses *u, enum ipc_use use, const char *method, const char *record, uid_t uid,
		      uint64_t now);
/** The client has gone: tell what was only counted. */
void record_uses_end(struct record_uses *u);

#endif /* STORE_RECORD_USES_H */
