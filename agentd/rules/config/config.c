/* SPDX-License-Identifier: MIT */
#include "agentd/rules/config/config.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <ini.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agentd/ipc/child.h"
#include "agentd/rules/engine/rules.h"
#include "base/cleanup.h"
#include "base/fd.h"
#include "base/nearest.h"
#include "base/str.h"
#include "paths.h"

#define FILE_MAX ((size_t)64 << 10)

enum kind { TEXT, USER, GROUP, NUMBER, DURATION, LIBRARY, SIZE, AGE, COUNT };

static const struct key {
	const char *section, *name;
	enum kind kind;
	size_t offset, size;
	uint32_t min, max;
} keys[] = {
#define NAMED_KEY(section, name, kind, field)                                                      \
	{ section, name, kind, offsetof(struct config, field), sizeof(((struct config *)0)->field), 0, 0 }
#define TEXT_KEY(section, name, field) NAMED_KEY(section, name, TEXT, field)
	TEXT_KEY("agent", "socket", socket),
	NAMED_KEY("agent", "user", USER, user),
	NAMED_KEY("agent", "socket_group", GROUP, socket_group),
	NAMED_KEY("agent", "admin_group", GROUP, admin_group),
	NAMED_KEY("agent", "observer_group", GROUP, observer_group),
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
#undef NAMED_KEY
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
	const struct config_reading *how;
	const char *left; /* of the text */
	int line;
	int open_rule; /* line of the header of a rule that has no key yet; 0: none */
	bool trusted;  /* the file may have rules */
	bool lost;     /* the last header was wrong: whatever its keys are, they are not looked at */
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
static const char *store(const struct key *k, const char *value, bool names_must_exist,
			 struct config *c)
{
	char *field = (char *)c + k->offset;
	uint64_t v = 0;

	if (names_must_exist && *value && k->kind == USER && !getpwnam(value))
		return "there is no such user";
	if (names_must_exist && *value && k->kind == GROUP && !getgrnam(value))
		return "there is no such group";
	switch (k->kind) {
	case USER:
	case GROUP:
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

/* What does not fit is not told. */
__attribute__((format(printf, 3, 4))) static void append(char *error, size_t size, const char *fmt, ...)
{
	size_t used = strlen(error);
	va_list ap;
	int n;

	if (used + 2 >= size)
		return;
	if (used)
		error[used++] = '\n';
	va_start(ap, fmt);
	n = vsnprintf(error + used, size - used, fmt, ap);
	va_end(ap);
	if (used && n >= 0 && (size_t)n >= size - used)
		error[used - 1] = '\0';
}

static void mistake(struct parse *p, int line, const char *section, const char *name,
		    const char *wrong)
{
	p->failed = true;
	if (section)
		append(p->error, p->error_size, "%s:%d: [%s]%s%s: %s", p->name, line, section,
		       *name ? " " : "", name, wrong);
	else
		append(p->error, p->error_size, "%s:%d: %s", p->name, line, wrong);
}

/* ------------------------------------------------------------------ names -------------------- */

/* The section that this one was meant for, or NULL. */
static const char *similar_section(const char *section)
{
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		if (nearest_is_near(nearest_distance(section, keys[i].section), strlen(keys[i].section)))
			return keys[i].section;
	return nearest_distance(section, "rule") <= 2 ? "rule NAME" : NULL;
}

static bool is_section(const char *section)
{
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		if (!strcmp(keys[i].section, section))
			return true;
	return false;
}

static const char *similar_key(const char *section, const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		if (!strcmp(keys[i].section, section) &&
		    nearest_is_near(nearest_distance(name, keys[i].name), strlen(keys[i].name)))
			return keys[i].name;
	return NULL;
}

/* A key of that name elsewhere. */
static const char *other_section(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		if (!strcmp(keys[i].name, name))
			return keys[i].section;
	return NULL;
}

static void unknown_key(struct parse *p, const char *section, const char *name, const char *similar)
{
	const char *other = similar ? NULL : other_section(name);
	char wrong[100];

	snprintf(wrong, sizeof(wrong), "unknown key%s%s%s%s%s%s", similar ? "; did you mean " : "",
		 similar ? similar : "", similar ? "?" : "", other ? "; it belongs into [" : "",
		 other ? other : "", other ? "]" : "");
	mistake(p, p->line, section, name, wrong);
}

/* ------------------------------------------------------------------ lines -------------------- */

static const char *store_rule(struct parse *p, const char *rule, const char *name,
			      const char *value)
{
	char where[PATH_MAX + 16];

	if (!p->how->rules)
		return "rules are not read here";
	if (!p->trusted)
		return "rules must be in a file that belongs to root and that nobody else may write";
	snprintf(where, sizeof(where), "%s:%d", p->name, p->line);
	return rules_set(p->how->rules, rule, name, value, where);
}

/* inih calls this for each key; it is never told of a mistake, because it would look for no other. */
static int on_key(void *user, const char *section, const char *name, const char *value)
{
	struct parse *p = user;
	const char *wrong, *rule = rules_section(section, &wrong);
	const struct key *k = rule ? NULL : find_key(section, name);

	p->open_rule = 0;
	if (p->lost)
		return 1;
	if (rule)
		wrong = store_rule(p, rule, name, value);
	else if (k)
		wrong = store(k, value, p->how->names_must_exist, p->config);
	/* Told once: the other keys of a rule that is not taken are no better. */
	if (rule && wrong && (!p->how->rules || !rules_find(p->how->rules, rule)))
		p->lost = true;
	if (!*section)
		mistake(p, p->line, NULL, "", "a key in front of the first section");
	else if (!rule && !k)
		unknown_key(p, section, name, similar_key(section, name));
	else if (wrong && !strcmp(wrong, RULES_UNKNOWN_KEY))
		unknown_key(p, section, name, rules_similar_key(name));
	else if (wrong)
		mistake(p, p->line, section, name, wrong);
	return 1;
}

/* What a section header says, in place of inih, which takes the keys behind a wrong one for those of the last. */
static void look_at_header(struct parse *p, const char *line)
{
	const char *end = strchr(line, ']'), *wrong, *similar;
	char section[100], text[160];
	size_t size = end ? (size_t)(end - line) - 1 : 0;

	p->lost = true;
	if (!end) {
		mistake(p, p->line, NULL, "", "a section header ends with ]");
		return;
	}
	if (size >= sizeof(section))
		size = sizeof(section) - 1;
	memcpy(section, line + 1, size);
	section[size] = '\0';
	if (rules_section(section, &wrong) || (!wrong && is_section(section))) {
		p->lost = false;
		p->open_rule = is_section(section) ? 0 : p->line;
		return;
	}
	similar = similar_section(section);
	snprintf(text, sizeof(text), "there is no such section%s%s%s", similar ? "; did you mean [" : "",
		 similar ? similar : "", similar ? "]?" : "");
	mistake(p, p->line, section, "", wrong ? wrong : text);
}

/* inih tells nothing of a section without keys, and of one line only that is no key. */
static void look_at_line(struct parse *p, const char *line)
{
	bool header = *line == '[';

	if (header && p->open_rule)
		mistake(p, p->open_rule, "rule", "", "this rule has no keys");
	if (header) {
		p->open_rule = 0;
		look_at_header(p, line);
	} else if (*line && !strchr("#;\r\n", *line) && !strpbrk(line, "=:")) {
		mistake(p, p->line, NULL, "", "neither a section, nor key = value, nor a comment");
	}
}

/* inih knows this of ; only. */
static void cut_comment(char *line)
{
	for (char *s = line; *s; s++)
		if (*s == '#' && (s == line || s[-1] == ' ' || s[-1] == '\t')) {
			*s = '\0';
			return;
		}
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

	for (;;) {
		if (!*p->left)
			return NULL;
		p->left += strspn(p->left, " \t");
		newline = strchr(p->left, '\n');
		n = newline ? (size_t)(newline - p->left) + 1 : strlen(p->left);
		p->line++;
		if (n < (size_t)size)
			break;
		mistake(p, p->line, NULL, "", "the line is too long");
		p->open_rule = 0;
		p->left += n;
	}
	memcpy(buf, p->left, n);
	buf[n] = '\0';
	p->left += n;
	cut_comment(buf);
	look_at_line(p, buf);
	return buf;
}

static int parse(struct config *c, const struct config_reading *how, const char *name,
		 const char *text, size_t size, bool trusted, char *error, size_t error_size)
{
	struct config parsed = *c;
	auto_free char *copy = NULL;
	struct parse p = { .config = &parsed, .how = how, .trusted = trusted, .name = name,
			   .error = error, .error_size = error_size };
	int line;

	if (size > FILE_MAX || memchr(text, '\0', size)) {
		append(error, error_size, "%s: not a configuration file", name);
		return -EINVAL;
	}
	copy = strndup(text, size);
	if (!copy)
		return -ENOMEM;
	/* The mark that some editors put in front of UTF-8. */
	p.left = str_starts_with(copy, "\xef\xbb\xbf") ? copy + 3 : copy;
	line = ini_parse_stream(next_line, &p, on_key, &p);
	if (p.open_rule)
		mistake(&p, p.open_rule, "rule", "", "this rule has no keys");
	if (line && !p.failed)
		mistake(&p, line, NULL, "", "syntax error");
	if (p.failed)
		return -EINVAL;
	*c = parsed;
	return 0;
}

int config_parse(struct config *c, const struct config_reading *how, const char *name,
		 const char *text, size_t size, char *error, size_t error_size)
{
	error[0] = '\0';
	return parse(c, how, name, text, size, true, error, error_size);
}

/* Of root, or of whoever runs a daemon for himself; and nobody else may change it. */
static bool is_trusted(const struct config_reading *how, int fd)
{
	struct stat st;

	return !how->rules_need_root ||
	       (fstat(fd, &st) == 0 && st.st_uid == 0 && !(st.st_mode & (S_IWGRP | S_IWOTH)));
}

static int read_file(struct config *c, const struct config_reading *how,
		     const char *path, char *error, size_t error_size)
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
		append(error, error_size, "%s: %s", path, strerror(-r));
		return r;
	}
	return parse(c, how, path, text, size, is_trusted(how, fd), error, error_size);
}

int config_read_file(struct config *c, const struct config_reading *how,
		     const char *path, char *error, size_t error_size)
{
	error[0] = '\0';
	return read_file(c, how, path, error, error_size);
}

/* @return 0 also when it is not there. */
static int read_if_there(struct config *c, const struct config_reading *how,
			 const char *path, char *error, size_t error_size)
{
	if (access(path, F_OK) < 0 && errno == ENOENT)
		return 0;
	return read_file(c, how, path, error, error_size);
}

static int is_fragment(const struct dirent *d)
{
	size_t n = strlen(d->d_name);

	return d->d_name[0] != '.' && n > 5 && !strcmp(d->d_name + n - 5, ".conf");
}

static int read_fragments(struct config *c, const struct config_reading *how,
			  const char *dir, char *error, size_t error_size)
{
	struct dirent **names;
	int n = scandir(dir, &names, is_fragment, alphasort), r = 0;

	if (n < 0 && errno != ENOENT) {
		r = -errno;
		append(error, error_size, "%s: %s", dir, strerror(-r));
	}
	for (int i = 0; i < n; i++) {
		char path[PATH_MAX + 300];
		int e;

		snprintf(path, sizeof(path), "%s/%s", dir, names[i]->d_name);
		e = read_file(c, how, path, error, error_size);
		r = r ? r : e;
		free(names[i]);
	}
	if (n >= 0)
		free(names);
	return r;
}

int config_read_default(struct config *c, const struct config_reading *how,
			char *error, size_t error_size)
{
	static const char *const dirs[] = { VENDORCONFDIR, SYSCONFDIR "/gpu-agent" };
	int r = 0;

	error[0] = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(dirs); i++) {
		char path[PATH_MAX];
		int e;

		snprintf(path, sizeof(path), "%s/agentd.conf", dirs[i]);
		e = read_if_there(c, how, path, error, error_size);
		r = r ? r : e;
		snprintf(path, sizeof(path), "%s/agentd.conf.d", dirs[i]);
		e = read_fragments(c, how, path, error, error_size);
		r = r ? r : e;
	}
	return r;
}
