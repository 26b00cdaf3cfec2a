/* SPDX-License-Identifier: MIT */
#include "agentd/rules/settings.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/str.h"

static int apply_option(const char *name, char *field, size_t size, const char *value)
{
	if (value && strlen(value) >= size) {
		log_error("--%s: too long", name);
		return -EINVAL;
	}
	if (value)
		str_copy(field, size, value);
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
static int apply_options(const struct options *o, struct config *c)
{
	uint64_t ms;

	if (o->user && !o->config)
		user_store(c->store_directory, sizeof(c->store_directory));
	if (apply_option("store", c->store_directory, sizeof(c->store_directory), o->store) < 0 ||
	    apply_option("socket", c->socket, sizeof(c->socket), o->socket) < 0 ||
	    apply_option("kfd", c->kfd_device, sizeof(c->kfd_device), o->kfd) < 0 ||
	    apply_option("kfd-sysfs", c->kfd_sysfs, sizeof(c->kfd_sysfs), o->kfd_sysfs) < 0 ||
	    apply_option("cuda-library", c->cuda_library, sizeof(c->cuda_library),
			 o->cuda_library) < 0)
		return -EINVAL;
	if (o->idle_exit) {
		if (str_to_ms(o->idle_exit, &ms) < 0) {
			log_error("--idle-exit %s: not a duration such as 90s", o->idle_exit);
			return -EINVAL;
		}
		c->idle_exit_ms = (uint32_t)ms;
	}
	return 0;
}

int settings_load(const struct options *o, struct config *c, struct rules *rules)
{
	const struct config_reading how = { .rules = rules, .rules_need_root = !o->user,
					    .names_must_exist = o->check_config };
	char error[CONFIG_ERROR_SIZE] = "";
	int r = 0, e;

	config_init(c);
	if (o->user) {
		const char *dir = getenv("XDG_RUNTIME_DIR");

		if (dir)
			snprintf(c->socket, sizeof(c->socket), "%s/gpu-agent/agentd.sock", dir);
		else
			c->socket[0] = '\0';
	}
	if (o->config)
		r = config_read_file(c, &how, o->config, error, sizeof(error));
	else if (!o->user)
		r = config_read_default(c, &how, error, sizeof(error));
	e = rules_check(rules, error, sizeof(error));
	r = r ? r : e;
	if (r < 0) {
		log_lines(error);
		return r;
	}
	r = apply_options(o, c);
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
