/* SPDX-License-Identifier: MIT */
/*
 * Metadata of a record to JSON and back.  The parser takes only what store_meta_encode() writes,
 * and simple members that later versions may add.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/out.h"
#include "base/str.h"
#include "store/internal.h"

#define SCHEMA "gpu-agent.record/1"
#define NAME_LONGEST 32

#define TEXT(field) { #field, offsetof(struct store_meta, field), sizeof(((struct store_meta *)0)->field), false }
#define NUMBER(field) { #field, offsetof(struct store_meta, field), sizeof(((struct store_meta *)0)->field), true }
const struct store_field store_fields[] = {
	{ "record", offsetof(struct store_meta, id), STORE_ID_SIZE, false },
	NUMBER(time_us), NUMBER(count), NUMBER(pid), NUMBER(uid), TEXT(boot_id), TEXT(comm), TEXT(rule),
	TEXT(reason), TEXT(vendor), TEXT(exception), TEXT(exe), TEXT(kernel), TEXT(location), TEXT(key),
	TEXT(body), { 0 },
};
#undef TEXT
#undef NUMBER

static uint64_t get_number(const struct store_meta *m, const struct store_field *f)
{
	const void *at = (const char *)m + f->offset;

	return f->size == sizeof(uint32_t) ? *(const uint32_t *)at : *(const uint64_t *)at;
}

static bool set_number(struct store_meta *m, const struct store_field *f, uint64_t v)
{
	void *at = (char *)m + f->offset;

	if (f->size == sizeof(uint64_t))
		*(uint64_t *)at = v;
	else if (v <= UINT32_MAX)
		*(uint32_t *)at = (uint32_t)v;
	else
		return false;
	return true;
}

const struct store_field *store_field_find(const char *name, size_t size)
{
	for (const struct store_field *f = store_fields; f->name; f++)
		if (strlen(f->name) == size && !strncasecmp(f->name, name, size))
			return f;
	return NULL;
}

const char *store_field_text(const struct store_meta *m, const struct store_field *f, char *buf)
{
	if (!f->is_number)
		return (const char *)m + f->offset;
	snprintf(buf, 21, "%" PRIu64, get_number(m, f));
	return buf;
}

void store_meta_encode(struct out *o, const struct store_meta *m)
{
	out_str(o, "{\"schema\":\"" SCHEMA "\"");
	for (const struct store_field *f = store_fields; f->name; f++) {
		const char *text = (const char *)m + f->offset;

		if (!f->is_number && !text[0])
			continue;
		out_fmt(o, ",\"%s\":", f->name);
		if (f->is_number)
			out_u64(o, get_number(m, f));
		else
			out_json_str(o, text, strnlen(text, f->size));
	}
	out_char(o, '}');
}

/* ------------------------------------------------------------------ reading ------------------ */

struct text {
	const char *at, *end;
};

static void skip_space(struct text *t)
{
	while (t->at < t->end && (*t->at == ' ' || *t->at == '\t'))
		t->at++;
}

static bool take(struct text *t, char c)
{
	skip_space(t);
	if (t->at == t->end || *t->at != c)
		return false;
	t->at++;
	return true;
}

static bool put(char *ret, size_t size, size_t *n, const char *bytes, size_t n_bytes)
{
	if (*n + n_bytes >= size)
		return false;
	memcpy(ret + *n, bytes, n_bytes);
	*n += n_bytes;
	return true;
}

/* Take \uXXXX.  out_json_str() writes only control characters so; surrogates cannot be ours. */
static bool take_unicode(struct text *t, char *ret, size_t size, size_t *n)
{
	uint32_t c = 0;

	for (int i = 0; i < 4; i++, t->at++) {
		char d;

		if (t->at == t->end)
			return false;
		d = *t->at;
		if (d >= '0' && d <= '9')
			c = c << 4 | (uint32_t)(d - '0');
		else if ((d | 0x20) >= 'a' && (d | 0x20) <= 'f')
			c = c << 4 | (uint32_t)((d | 0x20) - 'a' + 10);
		else
			return false;
	}
	if (c == 0 || (c >= 0xd800 && c < 0xe000))
		return false;
	if (c < 0x80)
		return put(ret, size, n, (char[]){ (char)c }, 1);
	if (c < 0x800)
		return put(ret, size, n,
			   (char[]){ (char)(0xc0 | c >> 6), (char)(0x80 | (c & 0x3f)) }, 2);
	return put(ret, size, n, (char[]){ (char)(0xe0 | c >> 12), (char)(0x80 | (c >> 6 & 0x3f)),
					   (char)(0x80 | (c & 0x3f)) }, 3);
}

static bool take_escape(struct text *t, char *ret, size_t size, size_t *n)
{
	static const char codes[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
	const char *code;

	if (t->at == t->end || !*t->at)
		return false;
	if (*t->at == 'u') {
		t->at++;
		return take_unicode(t, ret, size, n);
	}
	code = strchr(codes, *t->at++);
	return code && put(ret, size, n, &values[code - codes], 1);
}

/* Take a JSON string, which must fit with its NUL. */
static bool take_string(struct text *t, char *ret, size_t size)
{
	size_t n = 0;

	if (!take(t, '"'))
		return false;
	while (t->at < t->end && *t->at != '"') {
		size_t length = str_utf8_length(t->at, (size_t)(t->end - t->at));

		if (!length || (unsigned char)*t->at < 0x20)
			return false;
		if (*t->at == '\\') {
			t->at++;
			if (!take_escape(t, ret, size, &n))
				return false;
			continue;
		}
		if (!put(ret, size, &n, t->at, length))
			return false;
		t->at += length;
	}
	ret[n] = '\0';
	return take(t, '"');
}

static bool take_number(struct text *t, uint64_t *ret)
{
	char digits[21];
	size_t n = 0;

	skip_space(t);
	while (t->at < t->end && *t->at >= '0' && *t->at <= '9' && n + 1 < sizeof(digits))
		digits[n++] = *t->at++;
	digits[n] = '\0';
	return str_to_u64(digits, 0, UINT64_MAX, ret) == 0;
}

/* Skip the value of a member that a later version added: a string, a number or a word. */
static bool skip_value(struct text *t)
{
	char ignored[STORE_META_MAX];
	const char *from;

	skip_space(t);
	if (t->at < t->end && *t->at == '"')
		return take_string(t, ignored, sizeof(ignored));
	for (from = t->at; t->at < t->end &&
			   strchr("+-.0123456789abcdefghijklmnopqrstuvwxyzE", *t->at) && *t->at;)
		t->at++;
	return t->at > from;
}

static bool take_member(struct text *t, struct store_meta *m, bool *ret_ours)
{
	char name[NAME_LONGEST], schema[sizeof(SCHEMA)];
	const struct store_field *f;
	uint64_t v;

	if (!take_string(t, name, sizeof(name)) || !take(t, ':'))
		return false;
	if (!strcmp(name, "schema")) {
		*ret_ours = take_string(t, schema, sizeof(schema)) && !strcmp(schema, SCHEMA);
		return *ret_ours;
	}
	f = store_field_find(name, strlen(name));
	if (!f)
		return skip_value(t);
	if (f->is_number)
		return take_number(t, &v) && set_number(m, f, v);
	return take_string(t, (char *)m + f->offset, f->size);
}

int store_meta_decode(const char *text, size_t size, struct store_meta *ret)
{
	struct text t = { text, text + size };
	struct store_meta m = { .count = 1 };
	bool ours = false;

	if (size > STORE_META_MAX || !take(&t, '{'))
		return -EBADMSG;
	do {
		if (!take_member(&t, &m, &ours))
			return -EBADMSG;
	} while (take(&t, ','));
	if (!take(&t, '}') || !ours)
		return -EBADMSG;
	skip_space(&t);
	if (t.at != t.end)
		return -EBADMSG;
	*ret = m;
	return 0;
}
