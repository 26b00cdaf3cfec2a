/* SPDX-License-Identifier: MIT */
#include "dap/code/texts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Texts that have a reference, and bytes that they take together. */
#define TEXTS_MAX      1024u
#define TEXT_BYTES_MAX ((size_t)4 << 20)

uint64_t dap_text_digest(const void *bytes, size_t size)
{
	const uint8_t *p = bytes;
	uint64_t h = UINT64_C(0xcbf29ce484222325);

	for (size_t i = 0; i < size; i++)
		h = (h ^ p[i]) * UINT64_C(0x100000001b3);
	return h;
}

static size_t bytes_of(const struct dap_text *t)
{
	return t->text.size + t->room * sizeof(*t->addresses);
}

void dap_text_clear(struct dap_text *t)
{
	out_deinit(&t->text);
	free(t->addresses);
	t->addresses = NULL;
	t->n_lines = t->room = 0;
}

static void forget(struct dap_text *t)
{
	dap_text_clear(t);
	free(t->what);
	free(t->name);
	free(t->file);
	*t = (struct dap_text){ 0 };
}

void dap_texts_deinit(struct dap *d)
{
	for (size_t i = 0; i < d->n_texts; i++)
		forget(&d->texts[i]);
	free(d->texts);
	d->texts = NULL;
	d->n_texts = 0;
}

/* Is the first one to be given up before the second? */
static bool is_older(const struct dap_text *a, const struct dap_text *b)
{
	return !b || (a->is_old != b->is_old ? a->is_old : a->used < b->used);
}

void dap_text_keep(struct dap *d, const struct dap_text *t)
{
	for (;;) {
		struct dap_text *oldest = NULL;
		size_t bytes = 0;

		for (size_t i = 0; i < d->n_texts; i++) {
			struct dap_text *other = &d->texts[i];

			bytes += bytes_of(other);
			if (other != t && bytes_of(other) && is_older(other, oldest))
				oldest = other;
		}
		if (bytes <= TEXT_BYTES_MAX || !oldest)
			return;
		dap_text_clear(oldest);
	}
}

struct dap_text *dap_text_current(struct dap *d, const char *what)
{
	for (size_t i = 0; i < d->n_texts; i++) {
		struct dap_text *t = &d->texts[i];

		if (!t->is_old && t->generation == d->refs.generation && !strcmp(t->what, what)) {
			t->used = ++d->text_uses;
			return t;
		}
	}
	return NULL;
}

/* A free place, or that of the text which is used least. */
static struct dap_text *make_place(struct dap *d)
{
	struct dap_text *oldest = NULL;

	if (!d->texts)
		d->texts = calloc(TEXTS_MAX, sizeof(*d->texts));
	if (!d->texts)
		return NULL;
	if (d->n_texts < TEXTS_MAX)
		return &d->texts[d->n_texts++];
	for (size_t i = 0; i < d->n_texts; i++)
		if (is_older(&d->texts[i], oldest))
			oldest = &d->texts[i];
	forget(oldest);
	return oldest;
}

struct dap_text *dap_text_take(struct dap *d, const char *what, uint64_t digest)
{
	struct dap_text *t = NULL;
	char *copy;

	for (size_t i = 0; i < d->n_texts; i++) {
		if (strcmp(d->texts[i].what, what) != 0)
			continue;
		d->texts[i].is_old = d->texts[i].digest != digest;
		if (!d->texts[i].is_old)
			t = &d->texts[i];
	}
	if (!t) {
		copy = strdup(what);
		t = copy ? make_place(d) : NULL;
		if (!t) {
			free(copy);
			return NULL;
		}
		/* No number is given twice while the adapter runs: an editor may still show the first one's text. */
		*t = (struct dap_text){ .reference = ++d->n_references, .what = copy, .digest = digest };
	}
	t->generation = d->refs.generation;
	t->used = ++d->text_uses;
	return t;
}

/* ------------------------------------------------------------------ source ------------------- */

static struct dap_text *find_reference(struct dap *d, int64_t reference)
{
	for (size_t i = 0; i < d->n_texts; i++)
		if (d->texts[i].reference == reference)
			return &d->texts[i];
	return NULL;
}

int dap_source(struct dap *d, const struct dap_request *q, struct dap_answer *ret)
{
	struct dap_json v = dap_json_get(q->args, "sourceReference");
	struct dap_text *t;
	int64_t reference = 0;
	int r;

	if (dap_json_has(v) && !dap_json_i64(v, &reference))
		reference = -1;
	if (!reference)
		return agent_err_set(&ret->err, RPC_ERROR_UNSUPPORTED, EOPNOTSUPP, NULL, NULL,
				     "source: the editor reads files of this machine itself");
	if (reference < 0 || reference > d->n_references)
		return dap_invalid(&ret->err, "sourceReference: no frame of this session has had it");
	t = find_reference(d, reference);
	if (!t || !t->name || (t->is_old && !t->text.size))
		return dap_invalid(&ret->err, "sourceReference: what it stood for is not there any more");
	t->used = ++d->text_uses;
	if (!t->text.size) {
		r = t->make(d, t, &ret->err);
		if (r < 0)
			return r;
		dap_text_keep(d, t);
	}
	out_json_fmt(&ret->body, "{'content':%s", t->text.data);
	if (t->mime_type)
		out_json_fmt(&ret->body, ",'mimeType':%s", t->mime_type);
	out_char(&ret->body, '}');
	return 0;
}
