/* SPDX-License-Identifier: MIT */
/* Whether a rule that another process has filled in is one. */
#include <stddef.h>
#include <string.h>

#include "agentd/rules/engine/rules.h"
#include "base/cleanup.h"

#define TEXT(member) { offsetof(struct rule, member), sizeof(((struct rule *)0)->member) }

/* Each has an end. */
static const struct {
	size_t offset, size;
} texts[] = {
	TEXT(name), TEXT(where), TEXT(exe), TEXT(unit), TEXT(cgroup), TEXT(container),
	TEXT(hook.rule), TEXT(hook.path), TEXT(hook.user),
};

/* Anything else is no bool, and may be both true and false to the compiler. */
static const size_t bools[] = {
	offsetof(struct rule, chooses), offsetof(struct rule, hook.has_target_uid),
	offsetof(struct rule, hook.takes_root), offsetof(struct rule, why),
};

static bool has_sound_bytes(const char *bytes)
{
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		if (!memchr(bytes + texts[i].offset, '\0', texts[i].size))
			return false;
	for (size_t i = 0; i < ARRAY_SIZE(bools); i++)
		if (bytes[bools[i]] & ~1)
			return false;
	return true;
}

bool rules_is_sound(const void *bytes)
{
	static struct rule r;
	const struct hook_limits *limits = &r.hook.limits;

	if (!has_sound_bytes(bytes))
		return false;
	memcpy(&r, bytes, sizeof(r));
	return r.name[0] && r.n_users <= RULE_USERS_MAX && (unsigned)r.vendor <= IPC_VENDOR_NVIDIA &&
	       r.n_devices <= IPC_RULE_DEVICES_MAX && (unsigned)r.keep <= IPC_KEEP_FULL &&
	       (unsigned)r.frames <= IPC_FRAMES_NATIVE &&
	       r.rate_ms <= RULE_PERIOD_MS_MAX && r.key_ms <= RULE_PERIOD_MS_MAX &&
	       !(r.key_parts & ~(IPC_KEY_KERNEL | IPC_KEY_PC | IPC_KEY_CODE)) && r.hold_ms <= RULE_HOLD_MS_MAX &&
	       limits->timeout_ms >= 1 && limits->timeout_ms <= HOOK_TIMEOUT_MS_MAX &&
	       limits->output_bytes <= HOOK_OUTPUT_MAX && limits->memory_bytes <= INT64_MAX;
}
