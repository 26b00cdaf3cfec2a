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
	bool is_there;
	uint64_t digest; /* Of its text. */
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

static void remember(struct dap *d, const char *uri, const char *file, bool is_there, uint64_t digest)
{
	struct dap_embedded e = { .is_there = is_there, .digest = digest };

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
static bool name_text(struct dap_text *t, const char *file)
{
	t->make = make_text;
	t->file = strdup(file);
	t->name = t->file ? strdup(str_base_name(file)) : NULL;
	return t->name;
}

/* @return whether the code object has the file. */
static bool find_digest(struct dap *d, const struct rpc_code_place *place, const char *file, uint64_t *ret)
{
	const struct dap_embedded *known = find(d, place->uri, file);
	struct rpc_code_source_result result;
	struct agent_err err = { 0 };

	if (known) {
		*ret = known->digest;
		return known->is_there;
	}
	/* An agent that does not know the question has none, and is not asked again for each frame. */
	if (ask(d, place->address, file, false, &result, &err) < 0) {
		result = (struct rpc_code_source_result){ 0 };
		if (err.err == ECANCELED)
			return false;
	}
	remember(d, place->uri, file, result.has_digest, result.digest);
	*ret = result.digest;
	return result.has_digest;
}

uint32_t dap_embedded_at(struct dap *d, const struct rpc_code_place *place, const char *file)
{
	struct dap_text *t = NULL;
	const char *what;
	uint64_t digest;

	if (!place || !place->uri || !find_digest(d, place, file, &digest))
		return 0;
	what = rpc_arena_printf(&d->arena, "source %s %s", place->uri, file);
	if (what)
		t = dap_text_take(d, what, digest);
	if (!t || (!t->name && !name_text(t, file)))
		return 0;
	/* A library may have been loaded again, somewhere else. */
	t->address = place->address;
	return t->reference;
}
