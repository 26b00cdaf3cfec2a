/* SPDX-License-Identifier: MIT */
/* code.list, code.locate, code.source and code.read. */
#include <elf.h>
#include <errno.h>
#include <string.h>

#include "agentd/worker/session/handlers.h"
#include "agentd/worker/snapshot/hash.h"
#include "agentd/worker/snapshot/locations.h"
#include "agentd/worker/snapshot/snapshot.h"

static const char *hex(struct rpc_arena *a, const uint8_t *bytes, size_t n)
{
	static const char digits[] = "0123456789abcdef";
	char *text = n ? rpc_arena_alloc(a, 2 * n + 1) : NULL;

	for (size_t i = 0; text && i < n; i++) {
		text[2 * i] = digits[bytes[i] >> 4];
		text[2 * i + 1] = digits[bytes[i] & 15];
	}
	return text;
}

/* Make an error of a failure, or of an exhausted arena.  @return 0, or negative with @err. */
static int finish(struct rpc_arena *a, int r, const char *op, struct agent_err *err)
{
	if (rpc_arena_error(a) < 0)
		r = rpc_arena_error(a);
	if (r < 0)
		agent_err_set(err, RPC_ERROR_INTERNAL, -r, op, NULL,
			      "the answer does not fit into memory");
	return r;
}

static const char **fill_missing(struct rpc_arena *a, const struct code_set *s, bool all,
				 size_t *ret_n)
{
	const char **list = rpc_arena_array(a, CODE_MISSING_MAX, sizeof(*list));

	*ret_n = list ? code_missing(s, all, list) : 0;
	return list;
}

static void fill_object(struct rpc_arena *a, const struct code_object *o,
			struct rpc_code_object *ret)
{
	*ret = (struct rpc_code_object){
		.uri = o->uri,
		.bias = o->bias,
		.has_address = o->end,
		.address = o->start,
		.has_size = o->end,
		.size = o->end - o->start,
		.build_id = hex(a, o->build_id, o->build_id_size),
		.has_has_dwarf = o->is_read,
		.has_dwarf = o->has_dwarf,
		.has_has_lines = o->is_read,
		.has_lines = o->has_lines,
		.has_symbols = o->is_read,
		.symbols = (uint32_t)o->n_symbols,
		.problem = o->problem,
	};
}

static struct target *supported(void *ctx, struct agent_err *err)
{
	struct target *t = ((struct session *)ctx)->target;

	if (t->ops->code_list)
		return t;
	agent_err_set(err, RPC_ERROR_UNSUPPORTED, EOPNOTSUPP, NULL, NULL,
		      "devices of this vendor have no code objects");
	return NULL;
}

int handlers_code_list(void *ctx, struct rpc_call *call, struct rpc_arena *arena,
		       const struct rpc_code_list_params *params, struct rpc_code_list_result *ret,
		       struct agent_err *err)
{
	struct target *t = supported(ctx, err);
	struct code_set s;
	int r;

	if (!t)
		return -EOPNOTSUPP;
	arena->limit = TARGET_ARENA_MAX;
	r = code_set_init(&s, t, arena, HANDLERS_LOOK_UP_MS);
	ret->objects = rpc_arena_array(arena, s.n_objects, sizeof(*ret->objects));
	for (size_t i = 0; r == 0 && ret->objects && i < s.n_objects; i++) {
		(void)code_examine(&s, &s.objects[i]);
		fill_object(arena, &s.objects[i], &ret->objects[i]);
	}
	ret->n_objects = s.n_objects;
	ret->missing = fill_missing(arena, &s, true, &ret->n_missing);
	ret->complete = !ret->n_missing;
	code_set_deinit(&s);
	return finish(arena, r, "code.list", err);
}

/* @return whether a code object is known at the address. */
static bool fill_place(struct code_set *s, uint64_t address, struct rpc_code_place *ret)
{
	const struct symbols_location *l;
	struct code_symbol symbol;

	*ret = (struct rpc_code_place){ .address = address };
	if (code_locate(s, address, &l) < 0)
		return false;
	ret->uri = s->current->uri;
	ret->frames = locations_convert_frames(s->arena, l);
	ret->n_frames = ret->frames ? l->n_frames : 0;
	if (code_function(s, address, &symbol) == 0) {
		ret->has_symbol = true;
		ret->symbol = (struct rpc_symbol){ .name = symbol.name,
						   .raw = symbol.raw,
						   .address = symbol.address,
						   .size = symbol.size };
	}
	if (code_kernel_around(s, address, &symbol) == 0) {
		ret->has_kernel = true;
		ret->kernel = (struct rpc_kernel){ .address = symbol.address,
						   .name = symbol.name,
						   .raw = symbol.raw };
	}
	return true;
}

int handlers_code_locate(void *ctx, struct rpc_call *call, struct rpc_arena *arena,
			 const struct rpc_code_locate_params *params,
			 struct rpc_code_locate_result *ret, struct agent_err *err)
{
	struct target *t = supported(ctx, err);
	bool all_known = true;
	struct code_set s;
	int r;

	if (!t)
		return -EOPNOTSUPP;
	arena->limit = TARGET_ARENA_MAX;
	r = code_set_init(&s, t, arena, HANDLERS_LOOK_UP_MS);
	ret->n_places = params->n_addresses;
	ret->places = rpc_arena_array(arena, ret->n_places, sizeof(*ret->places));
	for (size_t i = 0; r == 0 && ret->places && i < ret->n_places; i++)
		all_known &= fill_place(&s, params->addresses[i], &ret->places[i]);
	ret->missing = fill_missing(arena, &s, !all_known, &ret->n_missing);
	ret->complete = !ret->n_missing;
	code_set_deinit(&s);
	return finish(arena, r, "code.locate", err);
}

/* ------------------------------------------------------------------ code.source -------------- */

/* Most bytes of a source that are told. */
#define SOURCE_MAX ((size_t)1 << 20)

/* Copy the text, without what is behind the last whole line that there is room for.  @return whether that is all. */
static bool copy_source(struct rpc_arena *a, const char *text, size_t size, const char **ret)
{
	size_t n = size < SOURCE_MAX ? size : SOURCE_MAX;
	const char *end = n < size ? memrchr(text, '\n', n) : NULL;
	char *copy;

	if (end)
		n = (size_t)(end - text) + 1;
	copy = rpc_arena_alloc(a, n + 1);
	if (!copy)
		return false;
	memcpy(copy, text, n);
	copy[n] = '\0';
	*ret = copy;
	return n == size;
}

static void fill_source(struct rpc_arena *a, const struct rpc_code_source_params *p, const char *text, size_t size,
			struct rpc_code_source_result *ret)
{
	bool all = true;

	ret->has_bytes = ret->has_digest = true;
	ret->bytes = size;
	ret->digest = hash_bytes(hash_secret(), text, size);
	if (!p->has_text || p->text)
		all = copy_source(a, text, size, &ret->text);
	if (!all && ret->missing)
		ret->missing[ret->n_missing++] = rpc_arena_printf(a, "%.200s: all but the first %zu bytes", p->file,
								  ret->text ? strlen(ret->text) : 0);
}

int handlers_code_source(void *ctx, struct rpc_call *call, struct rpc_arena *arena,
			 const struct rpc_code_source_params *params,
			 struct rpc_code_source_result *ret, struct agent_err *err)
{
	struct target *t = supported(ctx, err);
	const char *text;
	struct code_set s;
	size_t size;
	bool all;
	int r, found = -ENOENT;

	if (!t)
		return -EOPNOTSUPP;
	arena->limit = TARGET_ARENA_MAX;
	r = code_set_init(&s, t, arena, HANDLERS_LOOK_UP_MS);
	if (r == 0)
		found = code_source(&s, params->address, params->file, &text, &size);
	if (found == -ENOMEM)
		r = found;
	ret->missing = rpc_arena_array(arena, CODE_MISSING_MAX + 1, sizeof(*ret->missing));
	all = found < 0 && !code_find(&s, params->address);
	ret->n_missing = ret->missing ? code_missing(&s, all, ret->missing) : 0;
	if (found == 0)
		fill_source(arena, params, text, size, ret);
	ret->complete = !ret->n_missing;
	code_set_deinit(&s);
	return finish(arena, r, "code.source", err);
}

/* ------------------------------------------------------------------ code.read ---------------- */

static const struct code_object *find_object(struct target *t, struct rpc_arena *a, const char *uri)
{
	struct code_list l = { 0 };

	if (t->ops->code_list(t, a, &l) < 0)
		return NULL;
	for (size_t i = 0; i < l.n_objects; i++)
		if (strcmp(l.objects[i].uri, uri) == 0)
			return &l.objects[i];
	return NULL;
}

/* The target may name any file as a code object: only an ELF image is shown. */
static int check_image(struct target *t, const struct code_object *o)
{
	char magic[SELFMAG];
	ssize_t n = t->ops->code_read(t, o, 0, magic, sizeof(magic));

	if (n < 0)
		return (int)n;
	return n == SELFMAG && memcmp(magic, ELFMAG, SELFMAG) == 0 ? 0 : -ENOEXEC;
}

static ssize_t read_object(struct target *t, const struct code_object *o,
			   const struct rpc_code_read_params *p, void *buf, uint64_t *ret_total)
{
	struct code_stat st = { 0 };
	int r = t->ops->code_stat(t, o, &st);
	uint64_t left;

	/* The addresses of the code are not known yet, its bytes are. */
	if (r == -EADDRNOTAVAIL && st.size)
		r = 0;
	if (r == 0)
		r = check_image(t, o);
	if (r == 0 && t->ops->code_check)
		r = t->ops->code_check(t, o, st.size);
	if (r < 0)
		return r;
	*ret_total = st.size;
	left = p->offset < st.size ? st.size - p->offset : 0;
	return t->ops->code_read(t, o, p->offset, buf, left < p->size ? (size_t)left : p->size);
}

int handlers_code_read(void *ctx, struct rpc_call *call, struct rpc_arena *arena,
		       const struct rpc_code_read_params *params, struct rpc_code_read_result *ret,
		       struct agent_err *err)
{
	struct target *t = supported(ctx, err);
	const struct code_object *o;
	ssize_t n = -ENOENT;
	void *buf;

	if (!t)
		return -EOPNOTSUPP;
	arena->limit = TARGET_ARENA_MAX;
	buf = rpc_arena_alloc(arena, params->size);
	o = find_object(t, arena, params->uri);
	if (buf && o)
		n = read_object(t, o, params, buf, &ret->total);
	if (t->ops->code_done)
		t->ops->code_done(t);
	if (rpc_arena_error(arena))
		return finish(arena, 0, "code.read", err);
	if (n < 0)
		return agent_err_set(err, RPC_ERROR_FAILED, (int)-n, "code.read", NULL,
				     "code object %.120s: %s", params->uri,
				     o ? code_problem_text((int)n) : "there is none of that name");
	ret->size = (uint32_t)n;
	ret->data = rpc_arena_base64(arena, buf, (size_t)n);
	return finish(arena, 0, "code.read", err);
}
