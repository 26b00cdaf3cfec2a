/* SPDX-License-Identifier: MIT */
#include "base/out.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"

void out_init(struct out *o, size_t limit)
{
	*o = (struct out){ .limit = limit };
}

void out_deinit(struct out *o)
{
	free(o->data);
	*o = (struct out){ 0 };
}

void out_reset(struct out *o)
{
	o->size = 0;
	o->error = 0;
	if (o->data)
		o->data[0] = '\0';
}

/* Make room for size more bytes and the NUL, or set the sticky error. */
static bool reserve(struct out *o, size_t size)
{
	size_t want, capacity, limit = o->limit ? o->limit : OUT_LIMIT_DEFAULT;
	char *data;

	if (o->error)
		return false;
	if (size > limit - o->size) {
		o->error = -EFBIG;
		return false;
	}
	want = o->size + size + 1;
	if (want <= o->capacity)
		return true;
	capacity = o->capacity ? o->capacity : 256;
	while (capacity < want)
		capacity += capacity / 2;
	data = realloc(o->data, capacity);
	if (!data) {
		o->error = -ENOMEM;
		return false;
	}
	o->data = data;
	o->capacity = capacity;
	return true;
}

void out_bytes(struct out *o, const void *data, size_t size)
{
	if (!reserve(o, size))
		return;
	if (size)
		memcpy(o->data + o->size, data, size);
	o->size += size;
	o->data[o->size] = '\0';
}

void out_str(struct out *o, const char *s)
{
	out_bytes(o, s, strlen(s));
}

void out_char(struct out *o, char c)
{
	if (!reserve(o, 1))
		return;
	o->data[o->size++] = c;
	o->data[o->size] = '\0';
}

void out_u64(struct out *o, uint64_t v)
{
	char buf[20], *p = buf + sizeof(buf);

	do
		*--p = (char)('0' + v % 10);
	while (v /= 10);
	out_bytes(o, p, (size_t)(buf + sizeof(buf) - p));
}

void out_i64(struct out *o, int64_t v)
{
	if (v < 0) {
		out_char(o, '-');
		out_u64(o, 0 - (uint64_t)v);
	} else {
		out_u64(o, (uint64_t)v);
	}
}

void out_hex(struct out *o, uint64_t v)
{
	char buf[18], *p = buf + sizeof(buf);

	do
		*--p = "0123456789abcdef"[v & 15];
	while (v >>= 4);
	*--p = 'x';
	*--p = '0';
	out_bytes(o, p, (size_t)(buf + sizeof(buf) - p));
}

void out_vfmt(struct out *o, const char *fmt, va_list ap)
{
	va_list again;
	int n;

	va_copy(again, ap);
	n = vsnprintf(NULL, 0, fmt, again);
	va_end(again);
	if (n < 0 || !reserve(o, (size_t)n))
		return;
	vsnprintf(o->data + o->size, (size_t)n + 1, fmt, ap);
	o->size += (size_t)n;
}

void out_fmt(struct out *o, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	out_vfmt(o, fmt, ap);
	va_end(ap);
}

static void json_escape(struct out *o, unsigned char c)
{
	switch (c) {
	case '"':
		out_str(o, "\\\"");
		break;
	case '\\':
		out_str(o, "\\\\");
		break;
	case '\n':
		out_str(o, "\\n");
		break;
	case '\r':
		out_str(o, "\\r");
		break;
	case '\t':
		out_str(o, "\\t");
		break;
	default:
		out_fmt(o, "\\u%04x", c);
	}
}

void out_json_str(struct out *o, const char *s, size_t size)
{
	size_t plain = 0, i = 0, n;

	out_char(o, '"');
	while (i < size) {
		unsigned char c = (unsigned char)s[i];

		n = str_utf8_length(s + i, size - i);
		/* DEL is escaped, too: JSON allows it, but a terminal obeys it. */
		if (n && c >= 0x20 && c != '"' && c != '\\' && c != 0x7f) {
			i += n;
			continue;
		}
		out_bytes(o, s + plain, i - plain);
		if (n)
			json_escape(o, c);
		else
			out_str(o, "\xef\xbf\xbd");
		plain = ++i;
	}
	out_bytes(o, s + plain, size - plain);
	out_char(o, '"');
}

void out_json_name(struct out *o, const char *name, bool is_first)
{
	const size_t n = strlen(name);
	char *at;

	if (!reserve(o, n + (is_first ? 3 : 4)))
		return;
	at = o->data + o->size;
	if (!is_first)
		*at++ = ',';
	*at++ = '"';
	memcpy(at, name, n);
	memcpy(at + n, "\":", 3);
	o->size = (size_t)(at + n + 2 - o->data);
}

/* Append one value of a format.  @return what is behind its conversion. */
static const char *json_value(struct out *o, const char *spec, va_list *ap)
{
	bool is_long = spec[0] == 'l' || spec[0] == 'z';
	const char *text;

	spec += is_long;
	if (*spec == 's') {
		text = va_arg(*ap, const char *);
		out_json_str(o, text ? text : "", text ? strlen(text) : 0);
	} else if (*spec == 'i') {
		out_str(o, va_arg(*ap, int) ? "true" : "false");
	} else if (*spec == 'd') {
		out_i64(o, is_long ? va_arg(*ap, long) : va_arg(*ap, int));
	} else if (*spec == 'u') {
		out_u64(o, is_long ? va_arg(*ap, unsigned long) : va_arg(*ap, unsigned int));
	} else {
		out_char(o, '"');
		out_hex(o, is_long ? va_arg(*ap, unsigned long) : va_arg(*ap, unsigned int));
		out_char(o, '"');
	}
	return spec + 1;
}

void out_json_fmt(struct out *o, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	fmt += *fmt == ',' && o->size && strchr("{[", o->data[o->size - 1]);
	while (*fmt)
		if (*fmt == '%')
			fmt = json_value(o, fmt + 1, &ap);
		else
			out_char(o, *fmt == '\'' ? (fmt++, '"') : *fmt++);
	va_end(ap);
}

int out_steal(struct out *o, char **ret_data, size_t *ret_size)
{
	if (!o->error && !o->data)
		out_bytes(o, "", 0);
	if (o->error)
		return o->error;
	*ret_data = o->data;
	*ret_size = o->size;
	*o = (struct out){ .limit = o->limit };
	return 0;
}
