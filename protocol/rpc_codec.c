/* SPDX-License-Identifier: MIT */
/*
 * JSON to C structures and back, as the schema's tables say.  A structure is known by the offsets
 * of its members; values are copied with memcpy() where the type at an offset is known only at run
 * time.
 */
#include "protocol/rpc_codec.h"

#include <errno.h>
#include <inttypes.h>
#include <json-c/json.h>
#include <limits.h>
#include <string.h>

#include "base/out.h"
#include "base/str.h"
#include "protocol/rpc_copy.h"
#include "protocol/rpc_scan.h"
#include "rpc_gen.h"

/* One step from the root to the value at hand; it lives on the stack of the decoder. */
struct rpc_path {
	const struct rpc_path *up;
	const char *name; /* Name of a member; NULL: the step is an index. */
	size_t index;
};

void rpc_decoder_init_strict(struct rpc_decoder *d, struct rpc_arena *arena, struct agent_err *err)
{
	*d = (struct rpc_decoder){ .arena = arena,
				   .strict = true,
				   .code = RPC_ERROR_INVALID_PARAMS,
				   .err = err,
				   .root = "params" };
}

void rpc_decoder_init_lenient(struct rpc_decoder *d, const char *root, struct rpc_arena *arena,
			      struct agent_err *err)
{
	*d = (struct rpc_decoder){
		.arena = arena, .code = RPC_ERROR_INTERNAL, .err = err, .root = root
	};
}

static void write_path(struct out *o, const struct rpc_path *path)
{
	if (!path)
		return;
	write_path(o, path->up);
	if (path->name)
		out_fmt(o, ".%s", path->name);
	else
		out_fmt(o, "[%zu]", path->index);
}

static int refuse(struct rpc_decoder *d, const char *hint, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Fill the error with the path of the value and the message.  @return -EINVAL, always. */
static int refuse(struct rpc_decoder *d, const char *hint, const char *fmt, ...)
{
	auto_out struct out o;
	va_list ap;

	out_init(&o, 1024);
	out_str(&o, d->root);
	write_path(&o, d->path);
	out_str(&o, ": ");
	va_start(ap, fmt);
	out_vfmt(&o, fmt, ap);
	va_end(ap);
	agent_err_set(d->err, d->code, 0, NULL, hint, "%s", o.data ? o.data : d->root);
	return -EINVAL;
}

static int no_memory(struct rpc_decoder *d)
{
	int r = rpc_arena_error(d->arena);

	if (r == -EFBIG)
		agent_err_set(d->err, RPC_ERROR_TOO_LARGE, 0, NULL, NULL,
			      "%s: more data than one call may hold", d->root);
	else
		agent_err_no_memory(d->err, "decode");
	return r ? r : -ENOMEM;
}

static const char *type_name(struct json_object *v)
{
	switch (json_object_get_type(v)) {
	case json_type_boolean:
		return "a boolean";
	case json_type_double:
		return "a fraction";
	case json_type_int:
		return "an integer";
	case json_type_object:
		return "an object";
	case json_type_array:
		return "an array";
	case json_type_string:
		return "a string";
	case json_type_null:
		break;
	}
	return "null";
}

static int decode_unsigned(struct rpc_decoder *d, const struct rpc_member *m, struct json_object *v,
			   uint64_t *ret)
{
	uint64_t u;

	if (!json_object_is_type(v, json_type_int))
		return refuse(d, NULL, "must be an integer, not %s", type_name(v));
	u = json_object_get_uint64(v);
	/* json-c clamps a negative number to 0 here. */
	if (json_object_get_int64(v) < 0)
		return refuse(d, NULL, "must be between %" PRIu64 " and %" PRIu64 ", not %" PRId64,
			      m->min, m->max, json_object_get_int64(v));
	if (u < m->min || u > m->max)
		return refuse(d, NULL, "must be between %" PRIu64 " and %" PRIu64 ", not %" PRIu64,
			      m->min, m->max, u);
	*ret = u;
	return 0;
}

static int decode_signed(struct rpc_decoder *d, const struct rpc_member *m, struct json_object *v,
			 int64_t *ret)
{
	int64_t min = (int64_t)m->min, max = (int64_t)m->max, i;

	if (!json_object_is_type(v, json_type_int))
		return refuse(d, NULL, "must be an integer, not %s", type_name(v));
	i = json_object_get_int64(v);
	/* json-c clamps what only fits uint64_t to INT64_MAX. */
	if (i < min || i > max || (i == INT64_MAX && json_object_get_uint64(v) > INT64_MAX))
		return refuse(d, NULL, "must be between %" PRId64 " and %" PRId64, min, max);
	*ret = i;
	return 0;
}

static int decode_hex(struct rpc_decoder *d, struct json_object *v, uint64_t *ret)
{
	if (!json_object_is_type(v, json_type_string))
		return refuse(d, "64-bit values travel as strings",
			      "must be a string such as \"0x7f00\", not %s", type_name(v));
	/* A NUL inside would hide what follows it from str_to_hex64(). */
	if (strlen(json_object_get_string(v)) != (size_t)json_object_get_string_len(v) ||
	    str_to_hex64(json_object_get_string(v), ret))
		return refuse(d, NULL, "must be 0x and 1 to 16 hexadecimal digits");
	return 0;
}

static int decode_string(struct rpc_decoder *d, const struct rpc_member *m, struct json_object *v,
			 const char **ret)
{
	size_t size;

	if (!json_object_is_type(v, json_type_string))
		return refuse(d, NULL, "must be a string, not %s", type_name(v));
	size = (size_t)json_object_get_string_len(v);
	if (m->max_length && size > m->max_length)
		return refuse(d, NULL, "must have at most %" PRIu32 " bytes, not %zu",
			      m->max_length, size);
	if (memchr(json_object_get_string(v), '\0', size))
		return refuse(d, NULL, "must not contain a NUL character");
	*ret = rpc_arena_strndup(d->arena, json_object_get_string(v), size);
	return *ret ? 0 : no_memory(d);
}

/* Keep the text of any value, in json-c's spelling without blanks. */
static int decode_json(struct rpc_decoder *d, struct json_object *v, const char **ret)
{
	size_t size;
	const char *text = json_object_to_json_string_length(
		v, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE, &size);

	*ret = text ? rpc_arena_strndup(d->arena, text, size) : NULL;
	return *ret ? 0 : no_memory(d);
}

static int refuse_enum(struct rpc_decoder *d, const struct rpc_enum *e)
{
	auto_out struct out o;

	out_init(&o, 1024);
	for (size_t i = 0; i < e->n; i++)
		out_fmt(&o, "%s%s", i ? ", " : "one of: ", e->values[i].name);
	return refuse(d, o.data, "must be the name of a %s", e->name);
}

static int decode_enum(struct rpc_decoder *d, const struct rpc_enum *e, struct json_object *v,
		       void *ret)
{
	int64_t value;
	uint32_t raw;

	if (!json_object_is_type(v, json_type_string) ||
	    strlen(json_object_get_string(v)) != (size_t)json_object_get_string_len(v) ||
	    rpc_enum_value(e, json_object_get_string(v), &value))
		return refuse_enum(d, e);
	/* The C type of an enum has 32 bits. */
	raw = (uint32_t)value;
	memcpy(ret, &raw, sizeof(raw));
	return 0;
}

static int decode_value(struct rpc_decoder *d, const struct rpc_member *m, struct json_object *v,
			void *ret)
{
	uint64_t u;
	uint32_t u32;
	int r;

	switch (m->kind) {
	case RPC_KIND_BOOL:
		if (!json_object_is_type(v, json_type_boolean))
			return refuse(d, NULL, "must be true or false, not %s", type_name(v));
		*(bool *)ret = json_object_get_boolean(v);
		return 0;
	case RPC_KIND_U32:
		r = decode_unsigned(d, m, v, &u);
		if (r < 0)
			return r;
		u32 = (uint32_t)u;
		memcpy(ret, &u32, sizeof(u32));
		return 0;
	case RPC_KIND_U64:
		return decode_unsigned(d, m, v, ret);
	case RPC_KIND_I64:
		return decode_signed(d, m, v, ret);
	case RPC_KIND_HEX64:
		return decode_hex(d, v, ret);
	case RPC_KIND_STRING:
		return decode_string(d, m, v, ret);
	case RPC_KIND_JSON:
		return decode_json(d, v, ret);
	case RPC_KIND_ENUM:
		return decode_enum(d, m->enumeration, v, ret);
	case RPC_KIND_STRUCT:
		break;
	}
	if (!json_object_is_type(v, json_type_object))
		return refuse(d, NULL, "must be an object, not %s", type_name(v));
	return rpc_decode_struct(d, m->structure, v, ret);
}

static size_t element_size(const struct rpc_member *m)
{
	switch (m->kind) {
	case RPC_KIND_BOOL:
		return sizeof(bool);
	case RPC_KIND_U32:
	case RPC_KIND_ENUM:
		return sizeof(uint32_t);
	case RPC_KIND_U64:
	case RPC_KIND_I64:
	case RPC_KIND_HEX64:
		return sizeof(uint64_t);
	case RPC_KIND_STRING:
	case RPC_KIND_JSON:
		return sizeof(char *);
	case RPC_KIND_STRUCT:
		break;
	}
	return m->structure->size;
}

static int decode_array(struct rpc_decoder *d, const struct rpc_member *m, struct json_object *v,
			char *base)
{
	size_t n, size = element_size(m);
	struct rpc_path path = { .up = d->path };
	char *elements;
	int r;

	if (!json_object_is_type(v, json_type_array))
		return refuse(d, NULL, "must be an array, not %s", type_name(v));
	n = json_object_array_length(v);
	if (m->max_items && n > m->max_items)
		return refuse(d, NULL, "must have at most %" PRIu32 " items, not %zu", m->max_items,
			      n);
	elements = rpc_arena_array(d->arena, n, size);
	if (!elements)
		return no_memory(d);
	d->path = &path;
	for (size_t i = 0; i < n; i++) {
		path.index = i;
		r = decode_value(d, m, json_object_array_get_idx(v, i), elements + i * size);
		if (r < 0)
			return r;
	}
	d->path = path.up;
	memcpy(base + m->offset, &elements, sizeof(elements));
	memcpy(base + m->n_offset, &n, sizeof(n));
	return 0;
}

static int decode_member(struct rpc_decoder *d, const struct rpc_member *m, struct json_object *v,
			 char *base)
{
	struct rpc_path path = { .up = d->path, .name = m->name };
	int r;

	d->path = &path;
	r = m->array ? decode_array(d, m, v, base) : decode_value(d, m, v, base + m->offset);
	/* After a failure the path is not used any more, but it must not dangle. */
	d->path = path.up;
	if (!r && m->has_flag)
		*(bool *)(base + m->has_offset) = true;
	return r;
}

/* Find the first member that the structure lacks, and refuse the object for it. */
static int refuse_unknown(struct rpc_decoder *d, const struct rpc_struct *s,
			  struct json_object *obj)
{
	auto_out struct out o;
	char name[64] = "";

	json_object_object_foreach(obj, key, val) {
		size_t i = 0;

		(void)val;
		while (i < s->n && strcmp(s->members[i].name, key))
			i++;
		if (i == s->n) {
			str_copy(name, sizeof(name), key);
			break;
		}
	}
	out_init(&o, 1024);
	for (size_t i = 0; i < s->n; i++)
		out_fmt(&o, "%s%s", i ? ", " : "known: ", s->members[i].name);
	return refuse(d, s->n ? o.data : "leave it out; nothing is expected here",
		      "unknown member \"%s\"", name);
}

int rpc_decode_struct(struct rpc_decoder *d, const struct rpc_struct *s, struct json_object *obj,
		      void *ret)
{
	size_t found = 0;
	struct json_object *v;
	int r;

	memset(ret, 0, s->size);
	if (obj && !json_object_is_type(obj, json_type_object))
		return refuse(d, NULL, "must be an object, not %s", type_name(obj));
	for (size_t i = 0; i < s->n; i++) {
		const struct rpc_member *m = &s->members[i];

		if (!obj || !json_object_object_get_ex(obj, m->name, &v)) {
			if (m->optional)
				continue;
			return refuse(d, NULL, "\"%s\" is missing", m->name);
		}
		found++;
		r = decode_member(d, m, v, ret);
		if (r < 0)
			return r;
	}
	/* json-c keeps one value per name, so a surplus means a name that is not in the table. */
	if (d->strict && obj && (size_t)json_object_object_length(obj) != found)
		return refuse_unknown(d, s, obj);
	return 0;
}

static void encode_enum(struct out *o, const struct rpc_enum *e, uint32_t value)
{
	const char *name = rpc_enum_name(e, value);

	if (!name) {
		out_str(o, "null");
		return;
	}
	out_char(o, '"');
	out_str(o, name);
	out_char(o, '"');
}

static void encode_value(struct out *o, const struct rpc_member *m, const void *value)
{
	const char *text;
	uint32_t u32;

	switch (m->kind) {
	case RPC_KIND_BOOL:
		out_str(o, *(const bool *)value ? "true" : "false");
		return;
	case RPC_KIND_U32:
	case RPC_KIND_ENUM:
		memcpy(&u32, value, sizeof(u32));
		if (m->kind == RPC_KIND_U32)
			out_u64(o, u32);
		else
			encode_enum(o, m->enumeration, u32);
		return;
	case RPC_KIND_U64:
		out_u64(o, *(const uint64_t *)value);
		return;
	case RPC_KIND_I64:
		out_i64(o, *(const int64_t *)value);
		return;
	case RPC_KIND_HEX64:
		out_char(o, '"');
		out_hex(o, *(const uint64_t *)value);
		out_char(o, '"');
		return;
	case RPC_KIND_STRING:
		text = *(const char *const *)value;
		out_json_str(o, text ? text : "", text ? strlen(text) : 0);
		return;
	case RPC_KIND_JSON:
		text = *(const char *const *)value;
		out_str(o, text ? text : "null");
		return;
	case RPC_KIND_STRUCT:
		break;
	}
	rpc_encode_struct(o, m->structure, value);
}

/* Whether an optional member is there: its bool says so, or its pointer is not NULL. */
static bool is_present(const struct rpc_member *m, const char *base)
{
	if (!m->optional)
		return true;
	if (m->has_flag)
		return *(const bool *)(base + m->has_offset);
	return *(const char *const *)(base + m->offset) != NULL;
}

static void encode_array(struct out *o, const struct rpc_member *m, const char *base)
{
	size_t n = *(const size_t *)(base + m->n_offset), size = element_size(m);
	const char *elements = *(const char *const *)(base + m->offset);

	out_char(o, '[');
	for (size_t i = 0; i < n; i++) {
		if (i)
			out_char(o, ',');
		encode_value(o, m, elements + i * size);
	}
	out_char(o, ']');
}

void rpc_encode_struct(struct out *o, const struct rpc_struct *s, const void *value)
{
	const char *base = value;
	bool first = true;

	out_char(o, '{');
	for (size_t i = 0; i < s->n; i++) {
		const struct rpc_member *m = &s->members[i];

		if (!is_present(m, base))
			continue;
		out_json_name(o, m->name, first);
		if (m->array)
			encode_array(o, m, base);
		else
			encode_value(o, m, base + m->offset);
		first = false;
	}
	out_char(o, '}');
}

/* ------------------------------------------------------------------ copying ------------------ */

static int copy_value(struct rpc_arena *a, const struct rpc_member *m, const char *from, char *to)
{
	const char *text, *copy;

	if (m->kind == RPC_KIND_STRUCT)
		return rpc_copy_struct(a, m->structure, from, to);
	if (m->kind != RPC_KIND_STRING && m->kind != RPC_KIND_JSON) {
		memcpy(to, from, element_size(m));
		return 0;
	}
	text = *(const char *const *)from;
	copy = rpc_arena_strdup(a, text ? text : m->kind == RPC_KIND_JSON ? "null" : "");
	memcpy(to, &copy, sizeof(copy));
	return copy ? 0 : rpc_arena_error(a);
}

static int copy_array(struct rpc_arena *a, const struct rpc_member *m, const char *from, char *to)
{
	size_t n = *(const size_t *)(from + m->n_offset), size = element_size(m);
	const char *elements = *(const char *const *)(from + m->offset);
	char *copy = rpc_arena_array(a, n, size);
	int r = copy ? 0 : rpc_arena_error(a);

	for (size_t i = 0; r == 0 && i < n; i++)
		r = copy_value(a, m, elements + i * size, copy + i * size);
	memcpy(to + m->offset, &copy, sizeof(copy));
	memcpy(to + m->n_offset, &n, sizeof(n));
	return r;
}

int rpc_copy_struct(struct rpc_arena *a, const struct rpc_struct *s, const void *from, void *ret)
{
	const char *source = from;
	char *to = ret;
	int r = 0;

	memset(ret, 0, s->size);
	for (size_t i = 0; r == 0 && i < s->n; i++) {
		const struct rpc_member *m = &s->members[i];

		if (!is_present(m, source))
			continue;
		if (m->has_flag)
			*(bool *)(to + m->has_offset) = true;
		r = m->array ? copy_array(a, m, source, to) : copy_value(a, m, source + m->offset, to + m->offset);
	}
	return r;
}

bool rpc_struct_is_bare(const struct rpc_struct *structure)
{
	const struct rpc_member *m = structure->members;

	return structure->n == 1 && m->kind == RPC_KIND_JSON && !m->array && !m->optional;
}

const char *rpc_enum_name(const struct rpc_enum *e, int64_t value)
{
	for (size_t i = 0; i < e->n; i++)
		if (e->values[i].value == value)
			return e->values[i].name;
	return NULL;
}

const char *rpc_enum_join(struct rpc_arena *a, const struct rpc_enum *e, const void *values,
			  size_t n)
{
	auto_out struct out o = { 0 };
	const char *name;
	int32_t value;

	for (size_t i = 0; i < n; i++) {
		memcpy(&value, (const char *)values + i * sizeof(value), sizeof(value));
		name = rpc_enum_name(e, value);
		out_str(&o, i ? "," : "");
		if (name)
			out_str(&o, name);
		else
			out_i64(&o, value);
	}
	return out_error(&o) ? NULL : rpc_arena_strdup(a, o.data ? o.data : "");
}

int rpc_enum_value(const struct rpc_enum *e, const char *name, int64_t *ret_value)
{
	for (size_t i = 0; i < e->n; i++)
		if (!strcmp(e->values[i].name, name)) {
			*ret_value = e->values[i].value;
			return 0;
		}
	return -EINVAL;
}

/* Why a text is no valid JSON, also where json-c would accept or silently change it; or NULL. */
static const char *find_problem(const char *text, size_t size)
{
	enum rpc_token t;
	struct rpc_scan s;

	rpc_scan_init(&s, text, size, RPC_DEPTH_MAX);
	while ((t = rpc_scan_next(&s)) != RPC_TOKEN_END) {
		if (t == RPC_TOKEN_BAD)
			return s.problem;
		if (t == RPC_TOKEN_NUMBER &&
		    rpc_scan_is_huge_integer(text + s.start, s.pos - s.start))
			return "an integer has more than 64 bits";
	}
	return NULL;
}

static int out_of_memory(struct agent_err *err)
{
	return agent_err_no_memory(err, "parse");
}

static bool is_null(const char *text, size_t size)
{
	struct rpc_scan s;

	rpc_scan_init(&s, text, size, RPC_DEPTH_MAX);
	return rpc_scan_next(&s) == RPC_TOKEN_NULL;
}

int rpc_json_parse(const char *text, size_t size, struct json_object **ret, struct agent_err *err)
{
	const char *problem = size > INT_MAX ? "too long" : find_problem(text, size);
	struct json_tokener *tok;
	struct json_object *obj;
	enum json_tokener_error e;

	if (problem) {
		agent_err_set(err, RPC_ERROR_PARSE_ERROR, 0, NULL, NULL, "not valid JSON: %s",
			      problem);
		return -EINVAL;
	}
	tok = json_tokener_new_ex(RPC_DEPTH_MAX + 1);
	if (!tok)
		return out_of_memory(err);
	/*
	 * JSON_TOKENER_STRICT is not set: find_problem() is stricter, and with that flag json-c
	 * 0.18 takes every byte above 0x7f for a control character.
	 */
	obj = json_tokener_parse_ex(tok, text, (int)size);
	/* A number at the end of the text might go on: json-c needs a NUL or a blank behind it. */
	if (json_tokener_get_error(tok) == json_tokener_continue)
		obj = json_tokener_parse_ex(tok, " ", 1);
	e = json_tokener_get_error(tok);
	json_tokener_free(tok);
	if (e != json_tokener_success) {
		json_object_put(obj);
		return agent_err_set(err, RPC_ERROR_INTERNAL, EIO, "parse", NULL,
				     "json-c refuses valid JSON: %s", json_tokener_error_desc(e));
	}
	/* When json-c runs out of memory, it leaves out the value and reports success. */
	if (!obj && !is_null(text, size))
		return out_of_memory(err);
	*ret = obj;
	return 0;
}

void rpc_json_put(struct json_object *obj)
{
	json_object_put(obj);
}
