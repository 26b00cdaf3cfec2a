/* SPDX-License-Identifier: MIT */
#ifndef RULES_ENGINE_RULES_H
#define RULES_ENGINE_RULES_H

/**
 * @file rules.h
 * Watch rules, `[rule NAME]` sections of agentd.conf: which processes are watched without anybody
 * asking, for which exceptions, and what is kept of those (docs/RULES.md, agentd.conf(5)).
 *
 * Rules keep the order in which they were first named; the first that matches a process has it.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "agentd/ipc/child.h"
#include "agentd/ipc/monitor_worker.h"
#include "agentd/rules/hooks/hook_rule.h"

#define RULES_MAX	  HOOKS_RULES_MAX
#define RULES_UNKNOWN_KEY "unknown key" /**< An answer of rules_set(). */
#define RULE_USERS_MAX	  16
#define RULE_PATTERN_SIZE 256
#define RULE_WHERE_SIZE	  200
#define RULE_HOLD_MS_MAX  300000
#define RULE_PERIOD_MS_MAX (7u * 86400 * 1000)

struct rule {
	char name[IPC_RULE_NAME_SIZE];
	char where[RULE_WHERE_SIZE]; /**< FILE:LINE of its first key, for messages; cut in front if too long. */
	bool chooses; /**< Some key says which processes. */
	/* Which processes; "" or 0: any. */
	uid_t users[RULE_USERS_MAX];
	size_t n_users;
	char exe[RULE_PATTERN_SIZE];	   /**< Patterns, fnmatch(3); `*` stands for `/` as well. */
	char unit[RULE_PATTERN_SIZE];	   /**< Of the innermost service or scope. */
	char cgroup[RULE_PATTERN_SIZE];	   /**< Of the whole path. */
	char container[RULE_PATTERN_SIZE];
	enum ipc_vendor vendor;
	/* Of those processes. */
	uint32_t devices[IPC_RULE_DEVICES_MAX];
	uint32_t n_devices; /**< 0: any. */
	uint64_t exceptions; /**< Bit (code - 1). */
	enum ipc_keep keep;
	uint32_t rate_events, rate_ms; /**< Records of one process; 0: no limit. */
	uint32_t key_parts, key_ms;    /**< IPC_KEY_*; 0: every exception is a new one. */
	uint32_t hold_ms; /**< How long the application may wait for its fault while a core or its threads are read. */
	enum ipc_frames frames;
	bool why; /**< Records say what waves wait for. */
	struct hook_rule hook; /**< Run with what was found. */
};

struct rules {
	struct rule *list;
	size_t n;
};

/** Accepts a zeroed object. */
void rules_deinit(struct rules *r);
const struct rule *rules_find(const struct rules *r, const char *name);

/**
 * Name of a rule in a section header `rule NAME`.
 * @param ret_wrong  NULL, or what is wrong with it.
 * @return NULL when the section is none of a rule, or wrong.
 */
const char *rules_section(const char *section, const char **ret_wrong);
/**
 * One `key = value` of rule @p name.
 * @param where  FILE:LINE.
 * @return NULL, or what is wrong with it.
 */
const char *rules_set(struct rules *r, const char *name, const char *key, const char *value,
		      const char *where);
/** The name of a key that @p key may have been meant for, or NULL. */
const char *rules_similar_key(const char *key);
/**
 * Look at all of it when everything is read.
 * @param error  Each mistake is appended, one on a line.
 * @return 0, -EINVAL.
 */
int rules_check(const struct rules *r, char *error, size_t error_size);

/**
 * Could agentd.conf have made that rule?
 * @param bytes  Of a struct rule that another process has filled in.
 */
bool rules_is_sound(const void *bytes);

/** What a rule sees of a process. */
struct rule_subject {
	uid_t uid;
	enum ipc_vendor vendor;
	const char *exe;    /**< As /proc/PID/exe has it; NULL: could not be read. */
	const char *cgroup; /**< Text of /proc/PID/cgroup, NUL-terminated; NULL: could not be read. */
};

/** @return the first that matches, or NULL. */
const struct rule *rules_match(const struct rules *r, const struct rule_subject *s);

/** What a worker must know of it. */
void rules_tell(const struct rule *rule, struct ipc_rule *ret);

#endif /* RULES_ENGINE_RULES_H */
