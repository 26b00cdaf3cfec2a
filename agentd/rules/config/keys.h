/* SPDX-License-Identifier: MIT */
#ifndef RULES_CONFIG_KEYS_H
#define RULES_CONFIG_KEYS_H

/** @file keys.h  The keys of agentd.conf, apart from those of rules: what each may be, and where it is kept. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agentd/config.h"

struct out;

enum config_kind {
	CONFIG_TEXT,
	CONFIG_USER,
	CONFIG_GROUP,
	CONFIG_NUMBER,
	CONFIG_DURATION,
	CONFIG_LIBRARY,
	CONFIG_SIZE,
	CONFIG_AGE,
	CONFIG_COUNT,
};

struct config_key {
	const char *section, *name;
	enum config_kind kind;
	size_t offset, size; /**< In struct config; the size is that of a text. */
	uint32_t min, max;
	const char *unset; /**< What "" stands for, in words; NULL: it stands for nothing. */
};

/** In the order of agentd.conf(5). */
extern const struct config_key config_keys[];
extern const size_t config_n_keys;

/** @return NULL: there is no such key. */
const struct config_key *config_key_find(const char *section, const char *name);
/**
 * Set a value.
 * @param names_must_exist  Groups and users that do not exist are mistakes.
 * @return NULL, or what is wrong with it.
 */
const char *config_key_store(const struct config_key *k, const char *value, bool names_must_exist,
			     struct config *c);
/** @return NULL, or what is wrong with a value that another process has set. */
const char *config_key_check(const struct config_key *k, const struct config *c);
/** Append the value as agentd.conf would have it. */
void config_key_print(const struct config_key *k, const struct config *c, struct out *o);

#endif /* RULES_CONFIG_KEYS_H */
