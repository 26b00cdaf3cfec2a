/* SPDX-License-Identifier: MIT */
/*
 * Sources that are in the debug information of a code object, for those which are not on this machine.
 *
 * What the agent says of a file counts as long as the snapshot: other code may be loaded later.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "dap/code/instructions.h"
#include "dap/code/texts.h"

/* Files of one snapshot that are remembered; more are asked for again. */
#define FILES_MAX 256u

/* A file of a code object. */
struct dap_embedded {
	char *uri, *file;
	uint32_t reference; /* 0: the code object does not have it. */
};

void dap_embedded_forget(struct dap *d)
{
	for (size_t i = 0; i < d->n_embedded; i++) {
		free(d->embedded[i].uri);
		free(d->embedded[i].file);
	}
	free(d->embedded);
	d->embedded = NULL;
	d->n_embedded = 0;
}

static const struct dap_embedded *find(struct dap *d, const char *uri, const char *file)
{
	if (d->embedded_generation != d->refs.generation)
		dap_embedded_forget(d);
	d->embedded_generation = d->refs.generation;
	for (size_t i = 0; i < d->n_embedded; i++)
		if (!strcmp(d->embedded[i].file, file) && !strcmp(d->embedded[i].uri, uri))
			return &d->embedded[i];
	return NULL;
}

static void remember(struct dap *d, const char *uri, const char *file, uint32_t reference)
{
	struct dap_embedded e = { .reference = reference };

	if (!d->embedded)
		d->embedded = calloc(FILES_MAX, sizeof(*d->embedded));
	if (!d->embedded || d->n_embedded == FILES_MAX)
		return;
	e.uri = strdup(uri);
	e.file = strdup(file);
	if (e.uri && e.file) {
		d->embedded[d->n_embedded++] = e;
		return;
	}
	free(e.uri);
	free(e.file);
}

static int ask(struct dap *d, uint64_t address, const char *file, bool text, struct rpc_code_source_result *ret,
	       struct agent_err *err)
{
	const struct rpc_code_source_params p = { .session = d->session, .address = address, .file = file,
						  .has_text = true, .text = text };

	*ret = (struct rpc_code_source_result){ 0 };
	return rpc_client_code_source(d->client, &p, &d->arena, ret, err);
}

/* See dap_text.make. */
static int make_text(struct dap *d, struct dap_text *t, struct agent_err *err)
{
	struct rpc_code_source_result result;
	int r = ask(d, t->address, t->file, true, &result, err);

	if (r < 0)
		return r;
	if (!result.text || !result.has_digest || result.digest != t->digest)
		return dap_invalid(err, "sourceReference: the code of %s is not there any more", t->name);
	dap_text_clear(t);
	out_init(&t->text, 0);
	out_str(&t->text, result.text);
	if (out_error(&t->text)) {
		dap_text_clear(t);
		return agent_err_no_memory(err, NULL);
	}
	for (size_t i = 0; i < result.n_missing; i++)
		dap_output(d, "console", "missing: %s", result.missing[i]);
	return 0;
}

/* Make a new text one of a file. */
static bool name_text(struct dap_text *t, const char *file, uint64_t address)
{
	t->make = make_text;
	t->address = address;
	t->file = strdup(file);
	t->name = t->file ? strdup(str_base_name(file)) : NULL;
	return t->name;
}

uint32_t dap_embedded_at(struct dap *d, const struct rpc_code_place *place, const char *file)
{
	struct rpc_code_source_result result;
	const struct dap_embedded *known;
	struct agent_err ignored;
	struct dap_text *t = NULL;
	const char *what;

	if (!place || !place->uri)
		return 0;
	known = find(d, place->uri, file);
	if (known)
		return known->reference;
	/* An agent that does not know the question has none. */
	if (ask(d, place->address, file, false, &result, &ignored) < 0)
		return 0;
	what = rpc_arena_printf(&d->arena, "source %s %s", place->uri, file);
	if (what && result.has_digest)
		t = dap_text_take(d, what, result.digest);
	if (t && !t->name && !name_text(t, file, place->address))
		return 0;
	remember(d, place->uri, file, t ? t->reference : 0);
	return t ? t->reference : 0;
}
