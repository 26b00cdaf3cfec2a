/* SPDX-License-Identifier: MIT */
#include "agentd/rules/settings.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agentd/rules/config/keys.h"
#include "agentd/rules/config/parser.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/str.h"

/* A text that is set by the command line and not by a file. */
static const struct option_key {
	const char *option, *section, *name;
	size_t offset; /* in struct options */
} option_keys[] = {
	{ "store", "store", "directory", offsetof(struct options, store) },
	{ "socket", "agent", "socket", offsetof(struct options, socket) },
	{ "kfd", "kfd", "device", offsetof(struct options, kfd) },
	{ "kfd-sysfs", "kfd", "sysfs", offsetof(struct options, kfd_sysfs) },
	{ "cuda-library", "cuda", "library", offsetof(struct options, cuda_library) },
	{ "idle-exit", "agent", "idle_exit", offsetof(struct options, idle_exit) },
};

static void note(struct config_dump *dump, const struct option_key *k, const char *value)
{
	char where[32];

	snprintf(where, sizeof(where), "--%s", k->option);
	if (dump)
		config_dump_note(dump, k->section, k->name, value, where);
}

/* The command line may say more than a file: a library by a relative path, any time. */
static int apply_option(const struct option_key *k, const char *value, struct config *c)
{
	const struct config_key *key = config_key_find(k->section, k->name);
	char *field = (char *)c + key->offset;
	uint64_t ms;

	if (key->kind == CONFIG_DURATION) {
		if (str_to_ms(value, &ms) < 0) {
			log_error("--%s %s: not a duration such as 90s", k->option, value);
			return -EINVAL;
		}
		*(uint32_t *)(void *)field = (uint32_t)ms;
		return 0;
	}
	if (strlen(value) >= key->size) {
		log_error("--%s: too long", k->option);
		return -EINVAL;
	}
	str_copy(field, key->size, value);
	return 0;
}

/* As the XDG base directory specification has it; "" when there is no such place. */
static void user_store(char *ret, size_t size)
{
	const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");

	ret[0] = '\0';
	if (state && state[0] == '/')
		snprintf(ret, size, "%s/gpu-agent/cores", state);
	else if (home && home[0] == '/')
		snprintf(ret, size, "%s/.local/state/gpu-agent/cores", home);
}

static void log_lines(char *text)
{
	char *line;

	while ((line = strsep(&text, "\n")))
		log_error("%s", line);
}

/* What it says counts more than any file. */
static int apply_options(const struct options *o, struct config *c, struct config_dump *dump)
{
	int r = 0;

	if (o->user && !o->config) {
		user_store(c->store_directory, sizeof(c->store_directory));
		if (dump)
			config_dump_note(dump, "store", "directory", c->store_directory, "--user");
	}
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(option_keys); i++) {
		const char *value = *(const char *const *)(const void *)((const char *)o + option_keys[i].offset);

		if (!value)
			continue;
		r = apply_option(&option_keys[i], value, c);
		if (r == 0)
			note(dump, &option_keys[i], value);
	}
	return r;
}

int settings_load(const struct options *o, struct config *c, struct rules *rules, struct config_dump *dump)
{
	const struct config_reading how = { .rules = rules, .names_must_exist = o->check_config, .dump = dump };
	struct config_files files = { .rules_need_root = !o->user };
	char error[CONFIG_ERROR_SIZE] = "";
	int r;

	config_init(c);
	if (o->user) {
		const char *dir = getenv("XDG_RUNTIME_DIR");

		if (dir)
			snprintf(c->socket, sizeof(c->socket), "%s/gpu-agent/agentd.sock", dir);
		else
			c->socket[0] = '\0';
		if (dump)
			config_dump_note(dump, "agent", "socket", c->socket, "--user");
	}
	if (o->config)
		config_files_read(&files, o->config);
	else if (!o->user)
		config_files_read_default(&files);
	r = files.n || files.no_memory ? parser_parse_files(c, &how, &files, error, sizeof(error)) : 0;
	config_files_deinit(&files);
	if (r < 0) {
		log_lines(error);
		return r;
	}
	r = apply_options(o, c, dump);
	if (r < 0)
		return r;
	if (!c->socket[0]) {
		log_error("no socket path: set XDG_RUNTIME_DIR or give --socket");
		return -EINVAL;
	}
	return 0;
}

/* A group that does not exist gives nobody any right. */
static gid_t find_group(const char *name)
{
	const struct group *g = name[0] ? getgrnam(name) : NULL;

	if (name[0] && !g)
		log_warning("group %s does not exist: ignored", name);
	return g ? g->gr_gid : ACCESS_NO_GROUP;
}

int settings_resolve(const struct options *o, const struct config *c, bool socket, struct rules_ids *ret)
{
	const struct passwd *pw;

	*ret = (struct rules_ids){ .groups = { ACCESS_NO_GROUP, ACCESS_NO_GROUP },
				   .front_uid = getuid(), .front_gid = getgid(),
				   .socket_gid = ACCESS_NO_GROUP };
	if (o->user)
		return 0;
	ret->groups.admin_gid = find_group(c->admin_group);
	ret->groups.observer_gid = find_group(c->observer_group);
	if (socket)
		ret->socket_gid = find_group(c->socket_group);
	if (geteuid() != 0)
		return 0;
	pw = getpwnam(c->user);
	if (!pw)
		pw = getpwnam("nobody");
	if (!pw || pw->pw_uid == 0) {
		log_error("user %s does not exist (systemd-sysusers makes it)", c->user);
		return -ENOENT;
	}
	ret->front_uid = pw->pw_uid;
	ret->front_gid = pw->pw_gid;
	return 0;
}
