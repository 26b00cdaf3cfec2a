/* SPDX-License-Identifier: MIT */
#include "agentd/spawn/config.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ini.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/str.h"
#include "paths.h"

#define FILE_MAX ((size_t)64 << 10)

enum kind { TEXT, NUMBER, DURATION, LIBRARY, SIZE, AGE, COUNT };

static const struct key {
	const char *section, *name;
	enum kind kind;
	size_t offset, size;
	uint32_t min, max;
} keys[] = {
#define TEXT_KEY(section, name, field)                                                             \
	{ section, name, TEXT, offsetof(struct config, field), sizeof(((struct config *)0)->field), 0, 0 }
	TEXT_KEY("agent", "socket", socket),
	TEXT_KEY("agent", "user", user),
	TEXT_KEY("agent", "socket_group", socket_group),
	TEXT_KEY("agent", "admin_group", admin_group),
	TEXT_KEY("agent", "observer_group", observer_group),
	{ "agent", "idle_exit", DURATION, offsetof(struct config, idle_exit_ms), 0, 0, 86400000 },
	{ "limits", "connections", NUMBER, offsetof(struct config, connections), 0, 1, 4096 },
	{ "limits", "connections_per_user", NUMBER, offsetof(struct config, connections_per_user), 0, 1, 4096 },
	{ "limits", "sessions", NUMBER, offsetof(struct config, sessions), 0, 1, 1024 },
	{ "limits", "sessions_per_user", NUMBER, offsetof(struct config, sessions_per_user), 0, 1, 1024 },
	{ "limits", "max_suspended", DURATION, offsetof(struct config, max_suspended_ms), 0, 0, 86400000 },
	{ "limits", "silent_holder", DURATION, offsetof(struct config, silent_holder_ms), 0, 100, 86400000 },
	TEXT_KEY("kfd", "device", kfd_device),
	TEXT_KEY("kfd", "sysfs", kfd_sysfs),
	{ "cuda", "library", LIBRARY, offsetof(struct config, cuda_library),
	  sizeof(((struct config *)0)->cuda_library), 0, 0 },
	TEXT_KEY("store", "directory", store_directory),
#define LIMIT_KEY(name, kind)                                                                      \
	{ "store", #name, kind, offsetof(struct config, store_##name), CONFIG_LIMIT_MAX, 0, 0 }
	LIMIT_KEY(max_use, SIZE), LIMIT_KEY(keep_free, SIZE), LIMIT_KEY(max_body, SIZE),
	LIMIT_KEY(max_age, AGE), LIMIT_KEY(max_record_age, AGE), LIMIT_KEY(max_records, COUNT),
#undef LIMIT_KEY
#undef TEXT_KEY
};

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
		.silent_holder_ms = 60000,
		.kfd_device = "/dev/kfd",
		.kfd_sysfs = "/sys/class/kfd/kfd",
		.cuda_library = "libcuda.so.1",
		.store_directory = LOCALSTATEDIR "/lib/gpu-agent/cores",
	};
}

struct parse {
	struct config *config;
	const char *left; /* of the text */
	int line;
	int open_rule; /* line of the header of a rule that has no key yet; 0: none */
	bool trusted;  /* the file may have rules */
	bool failed;
	const char *name;
	char *error;
	size_t error_size;
};

static const struct key *find_key(const char *section, const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		if (!strcmp(keys[i].section, section) && !strcmp(keys[i].name, name))
			return &keys[i];
	return NULL;
}

static const char *wrong_limit(enum kind kind, const char *value)
{
	uint64_t v;
	uint32_t percent;

	if (kind == SIZE)
		return str_to_size(value, &v, &percent) < 0 ? "not a size such as 10G or 15%" : NULL;
	if (kind == AGE)
		return str_to_age(value, &v) < 0 ? "not an age such as 14d, 26w or 12h" : NULL;
	return str_to_u64(value, 0, UINT32_MAX, &v) < 0 ? "not a number" : NULL;
}

/* NULL, or what is wrong with the value. */
static const char *store(const struct key *k, const char *value, struct config *c)
{
	char *field = (char *)c + k->offset;
	uint64_t v = 0;

	switch (k->kind) {
	case TEXT:
		if (strlen(value) >= k->size)
			return "too long";
		str_copy(field, k->size, value);
		return NULL;
	case LIBRARY:
		/* Not relative to wherever we happen to be. */
		if (!*value || (*value != '/' && strchr(value, '/')))
			return "neither an absolute path nor a file name";
		if (strlen(value) >= k->size)
			return "too long";
		str_copy(field, k->size, value);
		return NULL;
	case SIZE:
	case AGE:
	case COUNT:
		if (strlen(value) >= k->size || wrong_limit(k->kind, value))
			return strlen(value) < k->size ? wrong_limit(k->kind, value) : "too long";
		str_copy(field, k->size, value);
		return NULL;
	case NUMBER:
		if (str_to_u64(value, k->min, k->max, &v) < 0)
			return "not a number in the allowed range";
		break;
	case DURATION:
		if (str_to_ms(value, &v) < 0 || v < k->min || v > k->max)
			return "not a duration such as 90s, 250ms or 5m";
		break;
	}
	*(uint32_t *)(void *)field = (uint32_t)v;
	return NULL;
}

/* Only the first mistake is told. */
static void mistake(struct parse *p, int line, const char *section, const char *name,
		    const char *wrong)
{
	if (p->failed)
		return;
	p->failed = true;
	if (section)
		snprintf(p->error, p->error_size, "%s:%d: [%s]%s%s: %s", p->name, line, section,
			 *name ? " " : "", name, wrong);
	else
		snprintf(p->error, p->error_size, "%s:%d: %s", p->name, line, wrong);
}

static const char *store_rule(struct parse *p, const char *rule, const char *name,
			      const char *value)
{
	if (!p->config->rules)
		return "rules are not read here";
	if (!p->trusted)
		return "rules must be in a file that belongs to root and that nobody else may write";
	return rules_set(p->config->rules, rule, name, value);
}

/* inih calls this for each key. */
static int on_key(void *user, const char *section, const char *name, const char *value)
{
	struct parse *p = user;
	const char *wrong, *rule = rules_section(section, &wrong);
	const struct key *k;

	p->open_rule = 0;
	if (rule) {
		wrong = store_rule(p, rule, name, value);
	} else if (!wrong) {
		k = find_key(section, name);
		wrong = k ? store(k, value, p->config) : "unknown key";
	}
	if (wrong)
		mistake(p, p->line, section, name, wrong);
	return !wrong;
}

/* inih tells nothing of a section without keys. */
static void look_at_line(struct parse *p, const char *line)
{
	bool header = *line == '[';

	if (header && p->open_rule)
		mistake(p, p->open_rule, "rule", "", "this rule has no keys");
	if (header)
		p->open_rule = str_starts_with(line, "[rule") ? p->line : 0;
}

/*
 * As fgets(); counts lines, and refuses those that inih would cut in two.  Blanks in front are left
 * out: an indented key would be one more value of the key above.
 */
static char *next_line(char *buf, int size, void *user)
{
	struct parse *p = user;
	const char *newline;
	size_t n;

	if (!*p->left)
		return NULL;
	p->left += strspn(p->left, " \t");
	newline = strchr(p->left, '\n');
	n = newline ? (size_t)(newline - p->left) + 1 : strlen(p->left);
	p->line++;
	if (n >= (size_t)size) {
		mistake(p, p->line, NULL, "", "the line is too long");
		return NULL;
	}
	memcpy(buf, p->left, n);
	buf[n] = '\0';
	p->left += n;
	look_at_line(p, buf);
	return buf;
}

static int parse(struct config *c, const char *name, const char *text, size_t size, bool trusted,
		 char *error, size_t error_size)
{
	struct config parsed = *c;
	auto_free char *copy = NULL;
	struct parse p = { .config = &parsed, .trusted = trusted, .name = name,
			   .error = error, .error_size = error_size };
	int line;

	if (size > FILE_MAX || memchr(text, '\0', size)) {
		snprintf(error, error_size, "%s: not a configuration file", name);
		return -EINVAL;
	}
	copy = strndup(text, size);
	if (!copy)
		return -ENOMEM;
	p.left = copy;
	line = ini_parse_stream(next_line, &p, on_key, &p);
	if (p.open_rule)
		mistake(&p, p.open_rule, "rule", "", "this rule has no keys");
	if (line)
		mistake(&p, line, NULL, "", "syntax error");
	if (p.failed)
		return -EINVAL;
	*c = parsed;
	return 0;
}

int config_parse(struct config *c, const char *name, const char *text, size_t size, char *error,
		 size_t error_size)
{
	return parse(c, name, text, size, true, error, error_size);
}

/* Of root, or of whoever runs a daemon for himself; and nobody else may change it. */
static bool is_trusted(const struct config *c, int fd)
{
	struct stat st;

	return !c->rules_need_root ||
	       (fstat(fd, &st) == 0 && st.st_uid == 0 && !(st.st_mode & (S_IWGRP | S_IWOTH)));
}

int config_read_file(struct config *c, const char *path, char *error, size_t error_size)
{
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);
	auto_free char *text = NULL;
	char opened[32];
	size_t size;
	int r = fd < 0 ? -errno : 0;

	/* What was judged is what is read, whatever the name stands for by then. */
	snprintf(opened, sizeof(opened), "/proc/self/fd/%d", fd);
	if (r == 0)
		r = fd_read_file(opened, FILE_MAX, &text, &size);
	if (r < 0) {
		snprintf(error, error_size, "%s: %s", path, strerror(-r));
		return r;
	}
	return parse(c, path, text, size, is_trusted(c, fd), error, error_size);
}

static int is_fragment(const struct dirent *d)
{
	size_t n = strlen(d->d_name);

	return d->d_name[0] != '.' && n > 5 && !strcmp(d->d_name + n - 5, ".conf");
}

static int read_fragments(struct config *c, const char *dir, char *error, size_t error_size)
{
	struct dirent **names;
	int n = scandir(dir, &names, is_fragment, alphasort), r = 0;

	if (n < 0 && errno != ENOENT) {
		r = -errno;
		snprintf(error, error_size, "%s: %s", dir, strerror(-r));
	}
	for (int i = 0; i < n; i++) {
		char path[PATH_MAX + 300];

		snprintf(path, sizeof(path), "%s/%s", dir, names[i]->d_name);
		if (r == 0)
			r = config_read_file(c, path, error, error_size);
		free(names[i]);
	}
	if (n >= 0)
		free(names);
	return r;
}

int config_read_default(struct config *c, char *error, size_t error_size)
{
	static const char *const dirs[] = { VENDORCONFDIR, SYSCONFDIR "/gpu-agent" };

	for (size_t i = 0; i < ARRAY_SIZE(dirs); i++) {
		char path[PATH_MAX];
		int r;

		snprintf(path, sizeof(path), "%s/agentd.conf", dirs[i]);
		r = config_read_file(c, path, error, error_size);
		if (r < 0 && r != -ENOENT)
			return r;
		snprintf(path, sizeof(path), "%s/agentd.conf.d", dirs[i]);
		r = read_fragments(c, path, error, error_size);
		if (r < 0)
			return r;
	}
	return 0;
}
