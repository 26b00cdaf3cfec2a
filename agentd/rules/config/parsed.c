/* SPDX-License-Identifier: MIT */
#include "agentd/rules/config/parsed.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agentd/rules/config/keys.h"
#include "base/cleanup.h"
#include "base/out.h"
#include "base/reader.h"
#include "base/str.h"

struct file_head {
	int32_t status;
	uint32_t trusted;
	uint32_t path_size, text_size; /* Of what follows; the path with its NUL. */
};

/* ------------------------------------------------------------------ the question ------------- */

void parsed_ask(struct out *o, const struct config *c, const struct config_reading *how, const struct config_files *f)
{
	const struct parsed_question q = { .layout = PARSED_LAYOUT,
					   .names_must_exist = how->names_must_exist,
					   .has_rules = how->rules != NULL,
					   .has_dump = how->dump != NULL,
					   .no_memory = f->no_memory,
					   .n_files = (uint32_t)f->n,
					   .config = *c };

	out_bytes(o, &q, sizeof(q));
	for (const struct config_file *i = f->list; i < f->list + f->n; i++) {
		const struct file_head head = { .status = i->status,
						.trusted = i->trusted,
						.path_size = (uint32_t)strlen(i->path) + 1,
						.text_size = (uint32_t)i->size };

		out_bytes(o, &head, sizeof(head));
		out_bytes(o, i->path, head.path_size);
		out_bytes(o, i->text, head.text_size);
	}
}

static int take_file(struct reader *r, struct config_file *ret)
{
	struct file_head head;
	const char *path, *text;

	reader_copy(r, &head, sizeof(head));
	path = reader_bytes(r, head.path_size);
	text = reader_bytes(r, head.text_size);
	if (reader_is_bad(r) || !head.path_size || path[head.path_size - 1])
		return -EBADMSG;
	*ret = (struct config_file){ .path = malloc(head.path_size), .text = malloc((size_t)head.text_size + 1),
				     .size = head.text_size, .status = head.status, .trusted = head.trusted };
	if (!ret->path || !ret->text)
		return -ENOMEM;
	memcpy(ret->path, path, head.path_size);
	memcpy(ret->text, text, head.text_size);
	return 0;
}

int parsed_read_question(const char *data, size_t size, struct parsed_question *ret, struct config_files *ret_files)
{
	struct reader r;
	int e = 0;

	reader_init(&r, data, size);
	reader_copy(&r, ret, sizeof(*ret));
	if (reader_is_bad(&r) || ret->layout != PARSED_LAYOUT || ret->n_files > size)
		return -EBADMSG;
	ret_files->list = calloc((size_t)ret->n_files + 1, sizeof(*ret_files->list));
	if (!ret_files->list)
		return -ENOMEM;
	ret_files->no_memory = ret->no_memory;
	while (e == 0 && ret_files->n < ret->n_files)
		e = take_file(&r, &ret_files->list[ret_files->n++]);
	return e;
}

/* ------------------------------------------------------------------ the answer --------------- */

void parsed_tell(struct out *o, const struct parsed_answer *a, const struct rules *rules,
		 const struct config_dump *dump)
{
	struct parsed_answer told = *a;

	told.layout = PARSED_LAYOUT;
	told.n_rules = (uint32_t)rules->n;
	told.n_settings = (uint32_t)dump->n;
	out_bytes(o, &told, sizeof(told));
	out_bytes(o, rules->list, rules->n * sizeof(*rules->list));
	config_dump_write(dump, o);
}

static bool is_config(const struct config *c)
{
	for (size_t i = 0; i < config_n_keys; i++)
		if (config_key_check(&config_keys[i], c))
			return false;
	return true;
}

static int take_rules(struct reader *r, uint32_t n, struct rules *rules)
{
	struct rule *list;
	const char *all;

	if (!n)
		return 0;
	if (!rules || n > RULES_MAX)
		return -EBADMSG;
	all = reader_bytes(r, n * sizeof(*list));
	for (uint32_t i = 0; all && i < n; i++)
		if (!rules_is_sound(all + i * sizeof(*list)))
			return -EBADMSG;
	if (!all)
		return -EBADMSG;
	list = calloc(n, sizeof(*list));
	if (!list)
		return -ENOMEM;
	memcpy(list, all, n * sizeof(*list));
	rules_deinit(rules);
	*rules = (struct rules){ .list = list, .n = n };
	return 0;
}

static int take_settings(struct reader *r, uint32_t n, struct config_dump *dump)
{
	if (n && !dump)
		return -EBADMSG;
	while (n--) {
		const char *text[4];

		for (size_t i = 0; i < ARRAY_SIZE(text); i++)
			if (!(text[i] = reader_string(r)))
				return -EBADMSG;
		config_dump_note(dump, text[0], text[1], text[2], text[3]);
	}
	return reader_left(r) ? -EBADMSG : 0;
}

int parsed_read_answer(const char *data, size_t size, struct config *c, struct rules *rules, struct config_dump *dump,
		       char *error, size_t error_size)
{
	static struct parsed_answer a;
	struct reader r;
	int e;

	reader_init(&r, data, size);
	reader_copy(&r, &a, sizeof(a));
	if (reader_is_bad(&r) || a.layout != PARSED_LAYOUT || a.status > 0 || a.status < -4095 ||
	    !memchr(a.error, '\0', sizeof(a.error)) || !is_config(&a.config))
		return -EBADMSG;
	e = take_rules(&r, a.n_rules, rules);
	if (e == 0)
		e = take_settings(&r, a.n_settings, dump);
	if (e < 0)
		return e;
	str_copy(error, error_size, a.error);
	if (a.status == 0)
		*c = a.config;
	return a.status;
}
