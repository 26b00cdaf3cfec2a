/* SPDX-License-Identifier: MIT */
#include "agentd/rules/config/config.h"

#include <errno.h>
#include <ini.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agentd/rules/config/dump.h"
#include "agentd/rules/config/keys.h"
#include "agentd/rules/engine/rules.h"
#include "base/cleanup.h"
#include "base/nearest.h"
#include "base/str.h"

struct parse {
	struct config *config;
	const struct config_reading *how;
	const char *left; /* of the text */
	int line;
	int open_rule; /* line of the header of a rule that has no key yet; 0: none */
	char open_section[100]; /* that header */
	bool trusted;  /* the file may have rules */
	bool lost;     /* the last header was wrong: whatever its keys are, they are not looked at */
	bool failed;
	const char *name;
	char *error;
	size_t error_size;
};

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
	for (size_t i = 0; i < config_n_keys; i++)
		if (nearest_is_near(nearest_distance(section, config_keys[i].section), strlen(config_keys[i].section)))
			return config_keys[i].section;
	return nearest_distance(section, "rule") <= 2 ? "rule NAME" : NULL;
}

static bool is_section(const char *section)
{
	for (size_t i = 0; i < config_n_keys; i++)
		if (!strcmp(config_keys[i].section, section))
			return true;
	return false;
}

static const char *similar_key(const char *section, const char *name)
{
	for (size_t i = 0; i < config_n_keys; i++)
		if (!strcmp(config_keys[i].section, section) &&
		    nearest_is_near(nearest_distance(name, config_keys[i].name), strlen(config_keys[i].name)))
			return config_keys[i].name;
	return NULL;
}

/* A key of that name elsewhere. */
static const char *other_section(const char *name)
{
	for (size_t i = 0; i < config_n_keys; i++)
		if (!strcmp(config_keys[i].name, name))
			return config_keys[i].section;
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

static void note(struct parse *p, const char *section, const char *name, const char *value)
{
	char where[PATH_MAX + 16];

	snprintf(where, sizeof(where), "%s:%d", p->name, p->line);
	config_dump_note(p->how->dump, section, name, value, where);
}

/* inih calls this for each key; it is never told of a mistake, because it would look for no other. */
static int on_key(void *user, const char *section, const char *name, const char *value)
{
	struct parse *p = user;
	const char *wrong, *rule = rules_section(section, &wrong);
	const struct config_key *k = rule ? NULL : config_key_find(section, name);

	p->open_rule = 0;
	if (p->lost)
		return 1;
	if (rule)
		wrong = store_rule(p, rule, name, value);
	else if (k)
		wrong = config_key_store(k, value, p->how->names_must_exist, p->config);
	if (p->how->dump && !wrong)
		note(p, section, name, value);
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
		str_copy(p->open_section, sizeof(p->open_section), section);
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
		mistake(p, p->open_rule, p->open_section, "", "this rule has no keys");
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

	if (size > CONFIG_FILE_MAX || memchr(text, '\0', size)) {
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
		mistake(&p, p.open_rule, p.open_section, "", "this rule has no keys");
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

int config_parse_files(struct config *c, const struct config_reading *how, const struct config_files *f, char *error,
		       size_t error_size)
{
	int r = f->no_memory ? -ENOMEM : 0;

	error[0] = '\0';
	for (const struct config_file *i = f->list; i < f->list + f->n; i++) {
		int e = i->status;

		if (e < 0)
			append(error, error_size, "%s: %s", i->path, strerror(-e));
		else
			e = parse(c, how, i->path, i->text, i->size, i->trusted, error, error_size);
		r = r ? r : e;
	}
	return r;
}
