/* SPDX-License-Identifier: MIT */
#include "agentd/rules/hooks/hook_rule.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"

#define MEMORY_BYTES_MIN ((uint64_t)16 << 20)

void hook_rule_init(struct hook_rule *r, const char *rule)
{
	*r = (struct hook_rule){ .limits = { .timeout_ms = HOOK_TIMEOUT_MS_DEFAULT,
					     .output_bytes = HOOK_OUTPUT_MAX,
					     .memory_bytes = HOOK_MEMORY_BYTES_DEFAULT } };
	str_copy(r->rule, sizeof(r->rule), rule);
}

static const char *set_path(struct hook_rule *r, const char *value)
{
	if (*value && *value != '/')
		return "not an absolute path";
	if (strlen(value) >= sizeof(r->path))
		return "too long";
	str_copy(r->path, sizeof(r->path), value);
	return NULL;
}

static const char *set_user(struct hook_rule *r, const char *value)
{
	if (strlen(value) >= sizeof(r->user))
		return "too long";
	str_copy(r->user, sizeof(r->user), value);
	return NULL;
}

static const char *set_timeout(struct hook_rule *r, const char *value)
{
	uint64_t ms;

	if (str_to_ms(value, &ms) < 0 || ms < 1 || ms > HOOK_TIMEOUT_MS_MAX)
		return "not a duration from 1ms to 5m";
	r->limits.timeout_ms = (uint32_t)ms;
	return NULL;
}

static const char *set_memory(struct hook_rule *r, const char *value)
{
	uint64_t bytes;

	if (str_to_bytes(value, &bytes) < 0 || bytes < MEMORY_BYTES_MIN || bytes > INT64_MAX)
		return "not a size of 16M or more";
	r->limits.memory_bytes = bytes;
	return NULL;
}

static const char *set_output(struct hook_rule *r, const char *value)
{
	uint64_t bytes;

	if (str_to_bytes(value, &bytes) < 0 || bytes > HOOK_OUTPUT_MAX)
		return "not a size up to 16K";
	r->limits.output_bytes = (uint32_t)bytes;
	return NULL;
}

bool hook_rule_set(struct hook_rule *r, const char *key, const char *value, const char **ret_wrong)
{
	static const struct {
		const char *key;
		const char *(*set)(struct hook_rule *r, const char *value);
	} keys[] = { { "hook", set_path },	     { "hook_user", set_user },
		     { "hook_timeout", set_timeout }, { "hook_memory", set_memory },
		     { "hook_output", set_output } };

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		if (strcmp(keys[i].key, key) != 0)
			continue;
		*ret_wrong = keys[i].set(r, value);
		return true;
	}
	return false;
}
