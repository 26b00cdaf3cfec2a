/* SPDX-License-Identifier: MIT */
#include "symbols/uri.h"

#include <errno.h>
#include <string.h>

/* A piece of text. */
struct span {
	const char *p;
	size_t n;
};

static bool take_prefix(struct span *s, const char *prefix)
{
	size_t n = strlen(prefix);

	if (s->n < n || memcmp(s->p, prefix, n))
		return false;
	s->p += n;
	s->n -= n;
	return true;
}

/*
 * Take what lies in front of the first byte out of @p stops, which is dropped; everything when
 * there is none.
 */
static struct span take_until(struct span *s, const char *stops)
{
	struct span head = { s->p, 0 };

	while (head.n < s->n && !(s->p[head.n] && strchr(stops, s->p[head.n])))
		head.n++;
	s->p += head.n;
	s->n -= head.n;
	if (s->n) {
		s->p++;
		s->n--;
	}
	return head;
}

static int digit_of(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f')
		return (c | 0x20) - 'a' + 10;
	return 16;
}

static int parse_number(struct span s, uint64_t *ret)
{
	unsigned base = 10;
	uint64_t v = 0;

	if (take_prefix(&s, "0x") || take_prefix(&s, "0X"))
		base = 16;
	else if (s.n > 1 && s.p[0] == '0')
		base = 8;
	if (!s.n)
		return -EINVAL;
	for (size_t i = 0; i < s.n; i++) {
		unsigned d = (unsigned)digit_of(s.p[i]);

		if (d >= base)
			return -EINVAL;
		if (__builtin_mul_overflow(v, (uint64_t)base, &v) ||
		    __builtin_add_overflow(v, (uint64_t)d, &v))
			return -ERANGE;
	}
	*ret = v;
	return 0;
}

static int parse_path(struct span s, char *path)
{
	size_t n = 0;

	for (size_t i = 0; i < s.n; i++) {
		char c = s.p[i];

		if (c == '%') {
			int hi = s.n - i > 2 ? digit_of(s.p[i + 1]) : 16;
			int lo = s.n - i > 2 ? digit_of(s.p[i + 2]) : 16;

			if (hi > 15 || lo > 15)
				return -EINVAL;
			c = (char)(hi << 4 | lo);
			i += 2;
		}
		if (!c)
			return -EINVAL;
		if (n == SYMBOLS_URI_PATH_MAX)
			return -ENAMETOOLONG;
		path[n++] = c;
	}
	path[n] = '\0';
	return n ? 0 : -EINVAL;
}

static int parse_range(struct span s, struct symbols_uri *u)
{
	bool has_offset = false;
	uint64_t end;
	int r;

	while (s.n) {
		struct span item = take_until(&s, "&");

		if (take_prefix(&item, "offset=") && !has_offset) {
			has_offset = true;
			r = parse_number(item, &u->offset);
		} else if (take_prefix(&item, "size=") && !u->has_size) {
			u->has_size = true;
			r = parse_number(item, &u->size);
		} else {
			r = -EINVAL;
		}
		if (r < 0)
			return r;
	}
	if (u->kind == SYMBOLS_URI_MEMORY && (!has_offset || !u->has_size))
		return -EINVAL;
	if (u->has_size && (!u->size || __builtin_add_overflow(u->offset, u->size, &end)))
		return -ERANGE;
	return 0;
}

int symbols_uri_parse(const char *text, size_t size, struct symbols_uri *ret)
{
	struct symbols_uri u = { .kind = SYMBOLS_URI_FILE };
	struct span s = { text, size }, where;
	uint64_t pid;
	int r;

	if (size > SYMBOLS_URI_MAX)
		return -ENAMETOOLONG;
	if (take_prefix(&s, "memory://"))
		u.kind = SYMBOLS_URI_MEMORY;
	else if (!take_prefix(&s, "file://"))
		return -EPROTONOSUPPORT;
	where = take_until(&s, "#?");
	if (u.kind == SYMBOLS_URI_FILE) {
		r = parse_path(where, u.path);
	} else {
		r = parse_number(where, &pid);
		if (r == 0 && (!pid || pid > INT32_MAX))
			r = -ERANGE;
		u.pid = r < 0 ? 0 : (uint32_t)pid;
	}
	if (r == 0)
		r = parse_range(s, &u);
	if (r < 0)
		return r;
	*ret = u;
	return 0;
}
