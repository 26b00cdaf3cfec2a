/* SPDX-License-Identifier: MIT */
#include "agentd/rules/config/keys.h"

#include <string.h>

#include "agentd/ipc/child.h"
#include "agentd/rules/config/config.h"
#include "agentd/rules/engine/users.h"
#include "base/cleanup.h"
#include "base/out.h"
#include "base/str.h"
#include "paths.h"

const struct config_key config_keys[] = {
#define NAMED_KEY(section, name, kind, field)                                                      \
	{ section, name, kind, offsetof(struct config, field), sizeof(((struct config *)0)->field), 0, 0, NULL }
#define TEXT_KEY(section, name, field) NAMED_KEY(section, name, CONFIG_TEXT, field)
	TEXT_KEY("agent", "socket", socket),
	NAMED_KEY("agent", "user", CONFIG_USER, user),
	NAMED_KEY("agent", "socket_group", CONFIG_GROUP, socket_group),
	NAMED_KEY("agent", "admin_group", CONFIG_GROUP, admin_group),
	NAMED_KEY("agent", "observer_group", CONFIG_GROUP, observer_group),
	{ "agent", "idle_exit", CONFIG_DURATION, offsetof(struct config, idle_exit_ms), 0, 0, 86400000 },
	{ "limits", "connections", CONFIG_NUMBER, offsetof(struct config, connections), 0, 1, 4096 },
	{ "limits", "connections_per_user", CONFIG_NUMBER, offsetof(struct config, connections_per_user), 0, 1, 4096 },
	{ "limits", "sessions", CONFIG_NUMBER, offsetof(struct config, sessions), 0, 1, 1024 },
	{ "limits", "sessions_per_user", CONFIG_NUMBER, offsetof(struct config, sessions_per_user), 0, 1, 1024 },
	{ "limits", "max_suspended", CONFIG_DURATION, offsetof(struct config, max_suspended_ms), 0, 0, 86400000 },
	{ "limits", "observer_stops", CONFIG_DURATION, offsetof(struct config, observer_stops_ms), 0, 0, 60000 },
	{ "limits", "observer_stop_rate", CONFIG_DURATION, offsetof(struct config, observer_stop_rate_ms), 0, 0, 1000 },
	{ "limits", "silent_holder", CONFIG_DURATION, offsetof(struct config, silent_holder_ms), 0, 100, 86400000 },
	TEXT_KEY("kfd", "device", kfd_device),
	TEXT_KEY("kfd", "sysfs", kfd_sysfs),
	{ "cuda", "library", CONFIG_LIBRARY, offsetof(struct config, cuda_library),
	  sizeof(((struct config *)0)->cuda_library), 0, 0, NULL },
	TEXT_KEY("store", "directory", store_directory),
#define LIMIT_KEY(name, kind, unset)                                                               \
	{ "store", #name, kind, offsetof(struct config, store_##name), CONFIG_LIMIT_MAX, 0, 0, unset }
	/* The store knows these defaults (store/store.h). */
	LIMIT_KEY(max_use, CONFIG_SIZE, "10%, at most 16G"),
	LIMIT_KEY(keep_free, CONFIG_SIZE, "15%, at most 4G"),
	LIMIT_KEY(max_body, CONFIG_SIZE, "half of max_use"),
	LIMIT_KEY(max_age, CONFIG_AGE, "14d"),
	LIMIT_KEY(max_record_age, CONFIG_AGE, "180d"),
	LIMIT_KEY(max_records, CONFIG_COUNT, "10000"),
#undef LIMIT_KEY
#undef TEXT_KEY
#undef NAMED_KEY
};
const size_t config_n_keys = ARRAY_SIZE(config_keys);

void config_init(struct config *c)
{
	*c = (struct config){
		.socket = RUNSTATEDIR "/gpu-agent/agentd.sock",
		.user = "gpu-agent",
		.socket_group = "gpu-debug",
		.connections = 512,
		.connections_per_user = 128,
		.sessions = 128,
		.sessions_per_user = 32,
		.max_suspended_ms = IPC_MAX_SUSPENDED_MS,
		.observer_stops_ms = 250,
		.observer_stop_rate_ms = 50,
		.silent_holder_ms = 60000,
		.kfd_device = "/dev/kfd",
		.kfd_sysfs = "/sys/class/kfd/kfd",
		.cuda_library = "libcuda.so.1",
		.store_directory = LOCALSTATEDIR "/lib/gpu-agent/cores",
	};
}

const struct config_key *config_key_find(const char *section, const char *name)
{
	for (size_t i = 0; i < config_n_keys; i++)
		if (!strcmp(config_keys[i].section, section) && !strcmp(config_keys[i].name, name))
			return &config_keys[i];
	return NULL;
}

static const char *wrong_limit(enum config_kind kind, const char *value)
{
	uint64_t v;
	uint32_t percent;

	if (kind == CONFIG_SIZE)
		return str_to_size(value, &v, &percent) < 0 ? "not a size such as 10G or 15%" : NULL;
	if (kind == CONFIG_AGE)
		return str_to_age(value, &v) < 0 ? "not an age such as 14d, 26w or 12h" : NULL;
	return str_to_u64(value, 0, UINT32_MAX, &v) < 0 ? "not a number" : NULL;
}

const char *config_key_store(const struct config_key *k, const char *value, bool names_must_exist,
			     struct config *c)
{
	char *field = (char *)c + k->offset;
	uint64_t v = 0;
	uint32_t id;

	if (names_must_exist && *value && k->kind == CONFIG_USER && users_find(USERS_USER, value, &id) < 0)
		return "there is no such user";
	if (names_must_exist && *value && k->kind == CONFIG_GROUP && users_find(USERS_GROUP, value, &id) < 0)
		return "there is no such group";
	switch (k->kind) {
	case CONFIG_USER:
	case CONFIG_GROUP:
	case CONFIG_TEXT:
		if (strlen(value) >= k->size)
			return "too long";
		str_copy(field, k->size, value);
		return NULL;
	case CONFIG_LIBRARY:
		/* Not relative to wherever we happen to be. */
		if (!*value || (*value != '/' && strchr(value, '/')))
			return "neither an absolute path nor a file name";
		if (strlen(value) >= k->size)
			return "too long";
		str_copy(field, k->size, value);
		return NULL;
	case CONFIG_SIZE:
	case CONFIG_AGE:
	case CONFIG_COUNT:
		if (strlen(value) >= k->size || wrong_limit(k->kind, value))
			return strlen(value) < k->size ? wrong_limit(k->kind, value) : "too long";
		str_copy(field, k->size, value);
		return NULL;
	case CONFIG_NUMBER:
		if (str_to_u64(value, k->min, k->max, &v) < 0)
			return "not a number in the allowed range";
		break;
	case CONFIG_DURATION:
		if (str_to_ms(value, &v) < 0 || v < k->min || v > k->max)
			return "not a duration such as 90s, 250ms or 5m";
		break;
	}
	*(uint32_t *)(void *)field = (uint32_t)v;
	return NULL;
}

const char *config_key_check(const struct config_key *k, const struct config *c)
{
	const char *field = (const char *)c + k->offset;
	const uint32_t value = k->size ? 0 : *(const uint32_t *)(const void *)field;

	if (!k->size)
		return value < k->min || value > k->max ? "out of range" : NULL;
	return memchr(field, '\0', k->size) ? NULL : "no text";
}

static void print_duration(struct out *o, uint32_t ms)
{
	if (ms % 1000)
		out_fmt(o, "%ums", ms);
	else if (ms && ms % 60000 == 0)
		out_fmt(o, "%um", ms / 60000);
	else
		out_fmt(o, "%us", ms / 1000);
}

void config_key_print(const struct config_key *k, const struct config *c, struct out *o)
{
	const void *field = (const char *)c + k->offset;

	if (k->kind == CONFIG_DURATION)
		print_duration(o, *(const uint32_t *)field);
	else if (k->kind == CONFIG_NUMBER)
		out_fmt(o, "%u", *(const uint32_t *)field);
	else
		out_str(o, field);
}
