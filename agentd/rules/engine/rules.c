/* SPDX-License-Identifier: MIT */
#include "agentd/rules/engine/rules.h"

#include <ctype.h>
#include <errno.h>
#include <fnmatch.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agentd/cgroup.h"
#include "agentd/rules/engine/users.h"
#include "base/cleanup.h"
#include "base/nearest.h"
#include "base/str.h"
#include "rpc_names.h"

#define SEPARATORS   ", \t"
#define RATE_EVENTS  10
#define RATE_MS	     60000
#define KEY_MS	     600000
#define HOLD_MS	     10000
#define WORDS_SIZE   1024
/* inih cuts longer headers off (its MAX_SECTION). */
#define SECTION_MAX  49

#define EXCEPTION_BIT(code) (UINT64_C(1) << ((code)-1))
/* Exceptions that only say that something was made, destroyed or switched. */
static const char *const no_faults[] = { "queue_new", "device_new", "device_queue_delete",
					 "process_runtime" };

#define NAME(text, code) { text, code },
static const struct {
	const char *name;
	unsigned code;
} exceptions[] = { RPC_NAMES_EXCEPTION(NAME) };
#undef NAME

void rules_deinit(struct rules *r)
{
	free(r->list);
	*r = (struct rules){ 0 };
}

static struct rule *find(const struct rules *r, const char *name)
{
	for (size_t i = 0; i < r->n; i++)
		if (!strcmp(r->list[i].name, name))
			return &r->list[i];
	return NULL;
}

const struct rule *rules_find(const struct rules *r, const char *name)
{
	return find(r, name);
}

/* ------------------------------------------------------------------ values ------------------- */

static bool is_name(const char *s)
{
	if (!isalnum((unsigned char)*s))
		return false;
	for (; *s; s++)
		if (!isalnum((unsigned char)*s) && !strchr("-_.", *s))
			return false;
	return true;
}

const char *rules_section(const char *section, const char **ret_wrong)
{
	const char *name;

	*ret_wrong = NULL;
	if (strcmp(section, "rule") && !str_starts_with(section, "rule "))
		return NULL;
	name = section + 4 + strspn(section + 4, " ");
	if (strlen(section) >= SECTION_MAX || strlen(name) >= IPC_RULE_NAME_SIZE)
		*ret_wrong = "the name of the rule is too long";
	else if (!is_name(name))
		*ret_wrong = "a rule needs a name of letters, digits, `-`, `_` and `.`";
	return *ret_wrong ? NULL : name;
}

/* fnmatch() takes an unclosed bracket literally and ignores a last backslash: mistakes, both. */
static const char *wrong_pattern(const char *p)
{
	if (!*p)
		return "is empty";
	for (; *p; p++) {
		if (*p == '\\' && !*++p)
			return "not a pattern: it ends with a backslash";
		if (*p != '[')
			continue;
		p += 1 + (p[1] == '!' || p[1] == '^');
		p = *p ? strchr(p + 1, ']') : NULL;
		if (!p)
			return "not a pattern: a [ without ]";
	}
	return NULL;
}

static const char *set_pattern(char *ret, const char *value)
{
	const char *wrong = wrong_pattern(value);

	if (!wrong && strlen(value) >= RULE_PATTERN_SIZE)
		wrong = "too long";
	if (!wrong)
		str_copy(ret, RULE_PATTERN_SIZE, value);
	return wrong;
}

static const char *set_exe(struct rule *r, const char *value)
{
	if (*value != '/' && *value != '*')
		return "not a pattern for paths: it begins with / or *";
	return set_pattern(r->exe, value);
}

static const char *set_unit(struct rule *r, const char *value)
{
	return set_pattern(r->unit, value);
}

static const char *set_cgroup(struct rule *r, const char *value)
{
	if (*value != '/' && *value != '*')
		return "not a pattern for control groups: it begins with / or *";
	return set_pattern(r->cgroup, value);
}

static const char *set_container(struct rule *r, const char *value)
{
	return set_pattern(r->container, value);
}

static bool parse_user(const char *word, uid_t *ret)
{
	uint64_t v;

	if (str_to_u64(word, 0, UINT32_MAX - 1, &v) == 0) {
		*ret = (uid_t)v;
		return true;
	}
	return users_find(USERS_USER, word, ret) == 0;
}

static const char *add_user(struct rule *r, const char *word)
{
	if (r->n_users == ARRAY_SIZE(r->users))
		return "too many users";
	return parse_user(word, &r->users[r->n_users++]) ? NULL : "no such user";
}

static const char *add_device(struct rule *r, const char *word)
{
	uint64_t id;

	if (!strcmp(word, "amd") || !strcmp(word, "nvidia")) {
		if (r->vendor)
			return "only one vendor is possible";
		r->vendor = *word == 'a' ? IPC_VENDOR_AMD : IPC_VENDOR_NVIDIA;
		return NULL;
	}
	if (str_to_u64(word, 0, UINT32_MAX, &id) < 0)
		return "neither amd, nvidia, nor the number of a device (gpu-agentctl devices)";
	if (r->n_devices == ARRAY_SIZE(r->devices))
		return "too many devices";
	r->devices[r->n_devices++] = (uint32_t)id;
	return NULL;
}

static uint64_t all_faults(void)
{
	uint64_t mask = 0;

	for (size_t i = 0; i < ARRAY_SIZE(exceptions); i++) {
		bool is_fault = true;

		for (size_t k = 0; k < ARRAY_SIZE(no_faults); k++)
			is_fault = is_fault && strcmp(exceptions[i].name, no_faults[k]) != 0;
		if (is_fault)
			mask |= EXCEPTION_BIT(exceptions[i].code);
	}
	return mask;
}

static const char *add_exception(struct rule *r, const char *word)
{
	if (!strcmp(word, "faults")) {
		r->exceptions |= all_faults();
		return NULL;
	}
	for (size_t i = 0; i < ARRAY_SIZE(exceptions); i++)
		if (!strcmp(exceptions[i].name, word)) {
			r->exceptions |= EXCEPTION_BIT(exceptions[i].code);
			/* The agent answers that one by itself, always. */
			return strcmp(word, "process_runtime") ? NULL : "process_runtime is no fault";
		}
	return "not the name of an exception, nor faults";
}

static const char *add_key_part(struct rule *r, const char *word)
{
	static const struct {
		const char *word;
		uint32_t part;
	} parts[] = { { "kernel", IPC_KEY_KERNEL },
		      { "pc", IPC_KEY_PC },
		      { "code", IPC_KEY_CODE } };

	for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
		if (!strcmp(parts[i].word, word)) {
			r->key_parts |= parts[i].part;
			return NULL;
		}
	return "not kernel, pc or code";
}

/* Words separated by commas or blanks, each given to @p add. */
static const char *each_word(struct rule *r, const char *value,
			     const char *(*add)(struct rule *r, const char *word))
{
	char words[WORDS_SIZE], *rest = words, *word;
	const char *wrong = NULL;
	size_t n = 0;

	if (strlen(value) >= sizeof(words))
		return "too long";
	str_copy(words, sizeof(words), value);
	while (!wrong && (word = strsep(&rest, SEPARATORS)))
		if (*word) {
			wrong = add(r, word);
			n++;
		}
	return wrong || n ? wrong : "is empty";
}

static const char *set_user(struct rule *r, const char *value)
{
	r->n_users = 0;
	return strcmp(value, "*") ? each_word(r, value, add_user) : NULL;
}

static const char *set_device(struct rule *r, const char *value)
{
	r->n_devices = 0;
	r->vendor = IPC_VENDOR_ANY;
	return each_word(r, value, add_device);
}

static const char *set_exceptions(struct rule *r, const char *value)
{
	r->exceptions = 0;
	return each_word(r, value, add_exception);
}

static const char *set_keep(struct rule *r, const char *value)
{
	static const char *const words[] = { [IPC_KEEP_NOTHING] = "nothing",
					     [IPC_KEEP_JSON] = "json",
					     [IPC_KEEP_LIGHT] = "light",
					     [IPC_KEEP_FULL] = "full" };

	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (!strcmp(words[i], value)) {
			r->keep = (enum ipc_keep)i;
			return NULL;
		}
	return "not json, light, full or nothing";
}

static const char *set_host(struct rule *r, const char *value)
{
	static const char *const words[] = { [IPC_FRAMES_OFF] = "off",
					     [IPC_FRAMES_PYTHON] = "python",
					     [IPC_FRAMES_NATIVE] = "native" };

	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (!strcmp(words[i], value)) {
			r->frames = (enum ipc_frames)i;
			return NULL;
		}
	return "not python, native or off";
}

static const char *set_why(struct rule *r, const char *value)
{
	r->why = !strcmp(value, "yes");
	return r->why || !strcmp(value, "no") ? NULL : "not yes or no";
}

static bool parse_period(const char *text, uint32_t *ret_ms)
{
	uint64_t ms, s;

	if (str_to_ms(text, &ms) < 0) {
		if (str_to_age(text, &s) < 0 || s > RULE_PERIOD_MS_MAX / 1000)
			return false;
		ms = s * 1000;
	}
	*ret_ms = (uint32_t)ms;
	return ms && ms <= RULE_PERIOD_MS_MAX;
}

/* `WHAT/PERIOD`; what is copied to @p ret. */
static const char *split_period(const char *value, char *ret, size_t size, uint32_t *ret_ms)
{
	const char *slash = strrchr(value, '/');

	if (!slash || (size_t)(slash - value) >= size)
		return "needs a time behind a slash, such as /10m";
	memcpy(ret, value, (size_t)(slash - value));
	ret[slash - value] = '\0';
	return parse_period(slash + 1, ret_ms) ? NULL : "the time behind the slash is not 1 ms to 7 d";
}

static const char *set_rate_limit(struct rule *r, const char *value)
{
	const char *wrong;
	char number[16];
	uint64_t n = 0;

	r->rate_events = 0;
	if (!strcmp(value, "none"))
		return NULL;
	wrong = split_period(value, number, sizeof(number), &r->rate_ms);
	if (!wrong && str_to_u64(number, 1, 1000000, &n) < 0)
		wrong = "not a number of records and a time, such as 10/1m, nor none";
	r->rate_events = (uint32_t)n;
	return wrong;
}

static const char *set_deduplicate(struct rule *r, const char *value)
{
	const char *wrong;
	char parts[64];

	r->key_parts = 0;
	if (!strcmp(value, "none"))
		return NULL;
	wrong = split_period(value, parts, sizeof(parts), &r->key_ms);
	return wrong ? wrong : each_word(r, parts, add_key_part);
}

static const char *set_hold(struct rule *r, const char *value)
{
	uint64_t ms;

	if (str_to_ms(value, &ms) < 0 || ms > RULE_HOLD_MS_MAX)
		return "not a time up to 5m";
	r->hold_ms = (uint32_t)ms;
	return NULL;
}

/* ------------------------------------------------------------------ rules -------------------- */

static const struct key {
	const char *name;
	const char *(*set)(struct rule *r, const char *value);
	bool chooses;
} keys[] = {
	{ "user", set_user, true },
	{ "exe", set_exe, true },
	{ "unit", set_unit, true },
	{ "cgroup", set_cgroup, true },
	{ "container", set_container, true },
	{ "device", set_device, true },
	{ "exceptions", set_exceptions, false },
	{ "keep", set_keep, false },
	{ "rate_limit", set_rate_limit, false },
	{ "deduplicate", set_deduplicate, false },
	{ "hold", set_hold, false },
	{ "host", set_host, false },
	{ "why", set_why, false },
};

static struct rule *add(struct rules *r, const char *name)
{
	struct rule *list = realloc(r->list, (r->n + 1) * sizeof(*list));
	struct rule *added;

	if (!list)
		return NULL;
	r->list = list;
	added = &list[r->n++];
	*added = (struct rule){ .exceptions = all_faults(),
				.keep = IPC_KEEP_JSON,
				.rate_events = RATE_EVENTS,
				.rate_ms = RATE_MS,
				.key_parts = IPC_KEY_KERNEL | IPC_KEY_PC | IPC_KEY_CODE,
				.key_ms = KEY_MS,
				.hold_ms = HOLD_MS };
	str_copy(added->name, sizeof(added->name), name);
	hook_rule_init(&added->hook, name);
	return added;
}

static const char *set_key(struct rule *r, const char *key, const char *value)
{
	const char *wrong;

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		if (!strcmp(keys[i].name, key)) {
			r->chooses = r->chooses || keys[i].chooses;
			return keys[i].set(r, value);
		}
	return hook_rule_set(&r->hook, key, value, &wrong) ? wrong : RULES_UNKNOWN_KEY;
}

const char *rules_similar_key(const char *key)
{
	static const char *const hook_keys[] = { "hook", "hook_user", "hook_timeout", "hook_memory",
						 "hook_output" };

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		if (nearest_is_near(nearest_distance(key, keys[i].name), strlen(keys[i].name)))
			return keys[i].name;
	for (size_t i = 0; i < ARRAY_SIZE(hook_keys); i++)
		if (nearest_is_near(nearest_distance(key, hook_keys[i]), strlen(hook_keys[i])))
			return hook_keys[i];
	return NULL;
}

/* The end of a path says more than its beginning. */
static void set_where(struct rule *r, const char *where)
{
	size_t size = strlen(where);

	str_copy(r->where, sizeof(r->where), where + (size < sizeof(r->where) ? 0 : size - sizeof(r->where) + 1));
}

const char *rules_set(struct rules *r, const char *name, const char *key, const char *value,
		      const char *where)
{
	struct rule *rule = find(r, name);

	if (!rule && r->n == RULES_MAX)
		return "too many rules";
	if (!rule) {
		rule = add(r, name);
		if (!rule)
			return "out of memory";
		set_where(rule, where);
	}
	return set_key(rule, key, value);
}

int rules_check(const struct rules *r, char *error, size_t error_size)
{
	int result = 0;

	for (size_t i = 0; i < r->n; i++) {
		const struct rule *rule = &r->list[i];
		size_t used = strlen(error);

		if (rule->chooses && (rule->hook.path[0] || !rule->hook.user[0]))
			continue;
		snprintf(error + used, error_size - used, "%s%s: [rule %s] %s", used ? "\n" : "", rule->where,
			 rule->name,
			 rule->chooses ? "hook_user: there is no hook" :
					 "says no user, exe, unit, cgroup, container or device: "
					 "exe = * would choose all processes");
		result = -EINVAL;
	}
	return result;
}

/* ------------------------------------------------------------------ matching ----------------- */

static bool has_user(const struct rule *r, uid_t uid)
{
	for (size_t i = 0; i < r->n_users; i++)
		if (r->users[i] == uid)
			return true;
	return !r->n_users;
}

/* Longer names match nothing: they are not in the agent's hands. */
static bool part_matches(const char *pattern, struct cgroup_part part)
{
	char text[PATH_MAX];

	if (!*pattern)
		return true;
	if (!part.text || part.size >= sizeof(text))
		return false;
	memcpy(text, part.text, part.size);
	text[part.size] = '\0';
	return fnmatch(pattern, text, 0) == 0;
}

/* A program that was replaced since has " (deleted)" behind its name (proc(5)); so may one that was not. */
static bool exe_matches(const char *pattern, const char *exe)
{
	static const char deleted[] = " (deleted)";
	const size_t tail = sizeof(deleted) - 1;
	size_t size = exe ? strlen(exe) : 0;
	char path[PATH_MAX];

	if (!*pattern)
		return true;
	if (!exe || size >= sizeof(path))
		return false;
	if (fnmatch(pattern, exe, 0) == 0)
		return true;
	if (size <= tail || strcmp(exe + size - tail, deleted) != 0)
		return false;
	memcpy(path, exe, size - tail);
	path[size - tail] = '\0';
	return fnmatch(pattern, path, 0) == 0;
}

static bool is_matching(const struct rule *r, const struct rule_subject *s)
{
	const char *cgroup = s->cgroup ? s->cgroup : "";
	size_t size = strlen(cgroup);

	return has_user(r, s->uid) && (!r->vendor || r->vendor == s->vendor) &&
	       exe_matches(r->exe, s->exe) &&
	       part_matches(r->cgroup, cgroup_path(cgroup, size)) &&
	       part_matches(r->unit, cgroup_unit(cgroup, size)) &&
	       part_matches(r->container, cgroup_container(cgroup, size));
}

const struct rule *rules_match(const struct rules *r, const struct rule_subject *s)
{
	for (size_t i = 0; i < r->n; i++)
		if (is_matching(&r->list[i], s))
			return &r->list[i];
	return NULL;
}

void rules_tell(const struct rule *rule, struct ipc_rule *ret)
{
	*ret = (struct ipc_rule){ .type = IPC_RULE };
	str_copy(ret->name, sizeof(ret->name), rule->name);
	ret->keep = rule->keep;
	ret->exceptions = rule->exceptions;
	ret->rate_events = rule->rate_events;
	ret->rate_ms = rule->rate_ms;
	ret->key_parts = rule->key_parts;
	ret->key_ms = rule->key_ms;
	ret->hold_ms = rule->hold_ms;
	ret->frames = rule->frames;
	ret->why = rule->why;
	ret->n_devices = rule->n_devices;
	memcpy(ret->devices, rule->devices, sizeof(ret->devices));
	ret->has_hook = rule->hook.path[0] != '\0';
}
