/* SPDX-License-Identifier: MIT */
#include "agentd/rules/config/dump.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agentd/rules/config/keys.h"
#include "base/out.h"
#include "base/vec.h"

#define COLUMN 40

struct config_setting {
	char *section, *name, *value, *where;
};

static struct config_setting *find(const struct config_dump *d, const char *section, const char *name)
{
	for (size_t i = 0; i < d->n; i++)
		if (!strcmp(d->list[i].section, section) && !strcmp(d->list[i].name, name))
			return &d->list[i];
	return NULL;
}

static void setting_deinit(struct config_setting *s)
{
	free(s->section);
	free(s->name);
	free(s->value);
	free(s->where);
}

static struct config_setting *add(struct config_dump *d)
{
	if (vec_reserve(&d->list, d->n, 1, &d->capacity, sizeof(*d->list)) < 0)
		return NULL;
	return &d->list[d->n++];
}

void config_dump_note(struct config_dump *d, const char *section, const char *name, const char *value,
		      const char *where)
{
	struct config_setting s = { strdup(section), strdup(name), strdup(value), strdup(where) };
	struct config_setting *to = find(d, section, name);

	if (to)
		setting_deinit(to);
	else
		to = add(d);
	if (!to || !s.section || !s.name || !s.value || !s.where)
		d->error = -ENOMEM;
	if (to)
		*to = s;
	else
		setting_deinit(&s);
}

const char *config_dump_where(const struct config_dump *d, const char *section, const char *name)
{
	const struct config_setting *s = find(d, section, name);

	return s ? s->where : NULL;
}

void config_dump_write(const struct config_dump *d, struct out *o)
{
	for (const struct config_setting *s = d->list; s < d->list + d->n; s++) {
		const char *const texts[] = { s->section, s->name, s->value, s->where };

		for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
			out_bytes(o, texts[i], strlen(texts[i]) + 1);
	}
}

void config_dump_deinit(struct config_dump *d)
{
	for (size_t i = 0; i < d->n; i++)
		setting_deinit(&d->list[i]);
	free(d->list);
	*d = (struct config_dump){ 0 };
}

static void print_origin(struct out *o, size_t line_begin, const char *where)
{
	size_t used = o->size - line_begin;

	out_fmt(o, "%*s # %s\n", used < COLUMN ? (int)(COLUMN - used) : 0, "", where);
}

static void print_key(const struct config_dump *d, const struct config *c, const struct config_key *k, struct out *o)
{
	const char *where = config_dump_where(d, k->section, k->name);
	const size_t begin = o->size;
	const bool unset = k->unset && !((const char *)c + k->offset)[0];

	/* A value that nobody has set and that the store computes is none that could be written here. */
	out_fmt(o, "%s%s = ", unset ? "#" : "", k->name);
	if (unset)
		out_str(o, k->unset);
	else
		config_key_print(k, c, o);
	print_origin(o, begin, where ? where : "built-in default");
}

/* Is it the first setting of its section? */
static bool is_first(const struct config_dump *d, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (!strcmp(d->list[k].section, d->list[i].section))
			return false;
	return true;
}

static void print_rule(const struct config_dump *d, const char *section, struct out *o)
{
	out_fmt(o, "\n[%s]\n", section);
	for (size_t i = 0; i < d->n; i++) {
		const struct config_setting *s = &d->list[i];
		const size_t begin = o->size;

		if (strcmp(s->section, section) != 0)
			continue;
		out_fmt(o, "%s = %s", s->name, s->value);
		print_origin(o, begin, s->where);
	}
}

void config_dump_print(const struct config_dump *d, const struct config *c, struct out *o)
{
	const char *section = "";

	for (size_t i = 0; i < config_n_keys; i++) {
		const struct config_key *k = &config_keys[i];

		if (strcmp(section, k->section) != 0)
			out_fmt(o, "%s[%s]\n", i ? "\n" : "", k->section);
		section = k->section;
		print_key(d, c, k, o);
	}
	for (size_t i = 0; i < d->n; i++)
		if (!config_key_find(d->list[i].section, d->list[i].name) && is_first(d, i))
			print_rule(d, d->list[i].section, o);
}
