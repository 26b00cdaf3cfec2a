/* SPDX-License-Identifier: MIT */
#ifndef RULES_CONFIG_DUMP_H
#define RULES_CONFIG_DUMP_H

/** @file dump.h  gpu-agentd --dump-config: every setting, and where it comes from. */

#include <stddef.h>

#include "agentd/config.h"

struct out;

/** What was set, in the order of the first time; starts zeroed. */
struct config_dump {
	struct config_setting *list;
	size_t n, capacity;
	int error; /**< 0, -ENOMEM: something is not in the list. */
};

/** Note a setting, in place of an earlier one; the strings are copied.  @param where  `FILE:LINE`, or an option. */
void config_dump_note(struct config_dump *d, const char *section, const char *name, const char *value,
		      const char *where);
/** @return where a setting was noted; NULL: nowhere. */
const char *config_dump_where(const struct config_dump *d, const char *section, const char *name);
/** Append a file that agentd.conf(5) could be, with the origin of each line as its comment. */
void config_dump_print(const struct config_dump *d, const struct config *c, struct out *o);
/** Append the list as bytes: of each setting the four texts, each with its NUL. */
void config_dump_write(const struct config_dump *d, struct out *o);
/** Free the list. */
void config_dump_deinit(struct config_dump *d);

#endif /* RULES_CONFIG_DUMP_H */
