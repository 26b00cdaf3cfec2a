/* SPDX-License-Identifier: MIT */
/*
 * A scanner without recursion: one bit for each open level says whether it is an object, and one
 * state says what may come next.
 */
#include "protocol/rpc_scan.h"

#include <assert.h>
#include <string.h>

#include "base/str.h"

/* What the grammar allows next. */
enum expect {
	EXPECT_VALUE,
	EXPECT_VALUE_OR_END, /* The state behind `[`. */
	EXPECT_NAME,
	EXPECT_NAME_OR_END, /* The state behind `{`. */
	EXPECT_COLON,
	EXPECT_COMMA_OR_END,
	EXPECT_NOTHING,
	EXPECT_FAILURE,
};

void rpc_scan_init(struct rpc_scan *s, const char *data, size_t size, unsigned max_depth)
{
	assert(max_depth <= RPC_SCAN_DEPTH_MAX);
	*s = (struct rpc_scan){ .data = data, .size = size, .max_depth = max_depth };
}

static enum rpc_token bad(struct rpc_scan *s, const char *problem)
{
	s->expect = EXPECT_FAILURE;
	s->problem = problem;
	return RPC_TOKEN_BAD;
}

/* The next byte, or -1 at the end. */
static int peek(const struct rpc_scan *s)
{
	return s->pos < s->size ? (unsigned char)s->data[s->pos] : -1;
}

static void skip_space(struct rpc_scan *s)
{
	int c = peek(s);

	while (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
		s->pos++;
		c = peek(s);
	}
}

static bool is_in_object(const struct rpc_scan *s)
{
	unsigned level = s->depth - 1;

	return s->depth && s->in_object[level / 64] >> (level % 64) & 1;
}

static enum rpc_token finish_value(struct rpc_scan *s, enum rpc_token t)
{
	s->expect = s->depth ? EXPECT_COMMA_OR_END : EXPECT_NOTHING;
	return t;
}

static enum rpc_token open_container(struct rpc_scan *s, bool object)
{
	uint64_t bit = UINT64_C(1) << (s->depth % 64);

	if (s->depth == s->max_depth)
		return bad(s, "nested too deeply");
	if (object)
		s->in_object[s->depth / 64] |= bit;
	else
		s->in_object[s->depth / 64] &= ~bit;
	s->depth++;
	s->pos++;
	s->expect = object ? EXPECT_NAME_OR_END : EXPECT_VALUE_OR_END;
	return object ? RPC_TOKEN_OBJECT : RPC_TOKEN_ARRAY;
}

static enum rpc_token close_container(struct rpc_scan *s)
{
	enum rpc_token t = is_in_object(s) ? RPC_TOKEN_OBJECT_END : RPC_TOKEN_ARRAY_END;

	s->pos++;
	s->depth--;
	return finish_value(s, t);
}

static int hex_digit(int c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The value of four hexadecimal digits, or -1. */
static int32_t hex4(const char *s, size_t size)
{
	int32_t v = 0;

	if (size < 4)
		return -1;
	for (size_t i = 0; i < 4; i++) {
		int d = hex_digit((unsigned char)s[i]);

		if (d < 0)
			return -1;
		v = v << 4 | d;
	}
	return v;
}

/* Read the rest of an escape whose backslash was just read. */
static bool scan_escape(struct rpc_scan *s, bool name)
{
	int c = peek(s);
	int32_t unit;

	if (c < 0 || !strchr("\"\\/bfnrtu", c) || !c)
		return false;
	s->pos++;
	if (c != 'u')
		return true;
	unit = hex4(s->data + s->pos, s->size - s->pos);
	/* json-c would end the name at a NUL, and two names would look like one. */
	if (unit < 0 || (name && !unit))
		return false;
	s->pos += 4;
	return true;
}

static enum rpc_token scan_string(struct rpc_scan *s, enum rpc_token t)
{
	size_t n;
	int c;

	s->pos++;
	while ((c = peek(s)) != '"') {
		if (c < 0)
			return bad(s, "a string has no end");
		if (c < 0x20)
			return bad(s, "a control character in a string");
		if (c == '\\') {
			s->pos++;
			if (!scan_escape(s, t == RPC_TOKEN_NAME))
				return bad(s, "a bad escape in a string");
			continue;
		}
		n = c < 0x80 ? 1 : str_utf8_length(s->data + s->pos, s->size - s->pos);
		if (!n)
			return bad(s, "a string is not UTF-8");
		s->pos += n;
	}
	s->pos++;
	if (t == RPC_TOKEN_STRING)
		return finish_value(s, t);
	s->expect = EXPECT_COLON;
	return t;
}

static bool scan_digits(struct rpc_scan *s)
{
	size_t start = s->pos;

	while (peek(s) >= '0' && peek(s) <= '9')
		s->pos++;
	return s->pos > start;
}

/* Read a number.  A digit behind a leading 0 is left, where it is no separator and fails. */
static enum rpc_token scan_number(struct rpc_scan *s)
{
	bool ok;

	if (peek(s) == '-')
		s->pos++;
	if (peek(s) == '0') {
		s->pos++;
		ok = true;
	} else {
		ok = scan_digits(s);
	}
	if (ok && peek(s) == '.') {
		s->pos++;
		ok = scan_digits(s);
	}
	if (ok && (peek(s) == 'e' || peek(s) == 'E')) {
		s->pos++;
		if (peek(s) == '+' || peek(s) == '-')
			s->pos++;
		ok = scan_digits(s);
	}
	return ok ? finish_value(s, RPC_TOKEN_NUMBER) : bad(s, "a bad number");
}

static enum rpc_token scan_word(struct rpc_scan *s)
{
	static const struct {
		const char *word;
		size_t size;
		enum rpc_token token;
	} words[] = { { "true", 4, RPC_TOKEN_TRUE },
		      { "false", 5, RPC_TOKEN_FALSE },
		      { "null", 4, RPC_TOKEN_NULL } };

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (s->size - s->pos >= words[i].size &&
		    !memcmp(s->data + s->pos, words[i].word, words[i].size)) {
			s->pos += words[i].size;
			return finish_value(s, words[i].token);
		}
	return bad(s, "a value was expected");
}

static enum rpc_token scan_value(struct rpc_scan *s)
{
	int c = peek(s);

	switch (c) {
	case '{':
		return open_container(s, true);
	case '[':
		return open_container(s, false);
	case '"':
		return scan_string(s, RPC_TOKEN_STRING);
	case -1:
		return bad(s, "the text ends too early");
	default:
		return c == '-' || (c >= '0' && c <= '9') ? scan_number(s) : scan_word(s);
	}
}

/* Read the colon or comma that stands between two tokens; false when it is not there. */
static bool scan_separator(struct rpc_scan *s)
{
	if (s->expect == EXPECT_COLON) {
		if (peek(s) != ':')
			return false;
		s->expect = EXPECT_VALUE;
	} else if (s->expect == EXPECT_COMMA_OR_END && peek(s) == ',') {
		s->expect = is_in_object(s) ? EXPECT_NAME : EXPECT_VALUE;
	} else {
		return s->expect != EXPECT_COMMA_OR_END;
	}
	s->pos++;
	skip_space(s);
	return true;
}

enum rpc_token rpc_scan_next(struct rpc_scan *s)
{
	bool may_end = s->expect == EXPECT_VALUE_OR_END || s->expect == EXPECT_NAME_OR_END ||
		       s->expect == EXPECT_COMMA_OR_END;

	if (s->expect == EXPECT_FAILURE)
		return RPC_TOKEN_BAD;
	skip_space(s);
	s->start = s->pos;
	if (may_end && peek(s) == (is_in_object(s) ? '}' : ']'))
		return close_container(s);
	if (s->expect == EXPECT_NOTHING)
		return s->pos == s->size ? RPC_TOKEN_END : bad(s, "something follows the value");
	if (!scan_separator(s))
		return bad(s, s->pos == s->size	      ? "the text ends too early" :
			      s->expect == EXPECT_COLON ? "a colon was expected" :
							  "a comma was expected");
	s->start = s->pos;
	if (s->expect == EXPECT_VALUE || s->expect == EXPECT_VALUE_OR_END)
		return scan_value(s);
	if (peek(s) == '"')
		return scan_string(s, RPC_TOKEN_NAME);
	return bad(s, peek(s) < 0 ? "the text ends too early" : "a member name was expected");
}

bool rpc_scan_rest(struct rpc_scan *s, enum rpc_token first, const char **ret_text,
		   size_t *ret_size)
{
	size_t start = s->start;
	unsigned depth = s->depth;

	if (first == RPC_TOKEN_OBJECT || first == RPC_TOKEN_ARRAY)
		while (s->depth >= depth)
			if (rpc_scan_next(s) == RPC_TOKEN_BAD)
				return false;
	*ret_text = s->data + start;
	*ret_size = s->pos - start;
	return true;
}

bool rpc_scan_is_huge_integer(const char *text, size_t size)
{
	bool negative = size && *text == '-';
	uint64_t v = 0;

	for (size_t i = negative; i < size; i++) {
		if (text[i] < '0' || text[i] > '9')
			return false;
		if (__builtin_mul_overflow(v, UINT64_C(10), &v) ||
		    __builtin_add_overflow(v, (uint64_t)(text[i] - '0'), &v)) {
			/* 1e30 is a fraction in disguise: only plain digits are an integer. */
			return !memchr(text, '.', size) && !memchr(text, 'e', size) &&
			       !memchr(text, 'E', size);
		}
	}
	/* INT64_MIN is one further from 0 than INT64_MAX. */
	return negative && v > (uint64_t)INT64_MAX + 1;
}

static size_t utf8_encode(uint32_t c, char *ret)
{
	if (c < 0x80) {
		ret[0] = (char)c;
		return 1;
	}
	if (c < 0x800) {
		ret[0] = (char)(0xc0 | c >> 6);
		ret[1] = (char)(0x80 | (c & 0x3f));
		return 2;
	}
	if (c < 0x10000) {
		ret[0] = (char)(0xe0 | c >> 12);
		ret[1] = (char)(0x80 | (c >> 6 & 0x3f));
		ret[2] = (char)(0x80 | (c & 0x3f));
		return 3;
	}
	ret[0] = (char)(0xf0 | c >> 18);
	ret[1] = (char)(0x80 | (c >> 12 & 0x3f));
	ret[2] = (char)(0x80 | (c >> 6 & 0x3f));
	ret[3] = (char)(0x80 | (c & 0x3f));
	return 4;
}

/* The character that an escape of a valid string stands for; the escape has *used bytes. */
static uint32_t read_escape(const char *text, size_t size, size_t *used)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	const char *at = memchr(from, text[1], sizeof(from) - 1);
	int32_t high, low;

	*used = 2;
	if (at)
		return (uint32_t)to[at - from];
	*used = 6;
	high = hex4(text + 2, size - 2);
	if (high < 0xd800 || high > 0xdfff)
		return (uint32_t)high;
	low = size >= 12 && text[6] == '\\' && text[7] == 'u' ? hex4(text + 8, size - 8) : -1;
	if (high > 0xdbff || low < 0xdc00 || low > 0xdfff)
		return 0xfffd; /* Half a surrogate pair becomes the replacement character. */
	*used = 12;
	return 0x10000 + (((uint32_t)high & 0x3ff) << 10 | ((uint32_t)low & 0x3ff));
}

bool rpc_scan_string(const char *text, size_t text_size, char *ret, size_t ret_size)
{
	size_t n = 0, used, length, i = 1;
	char utf8[4];

	assert(text_size >= 2 && ret_size > 0);
	while (i < text_size - 1) {
		if (text[i] == '\\') {
			length = utf8_encode(read_escape(text + i, text_size - 1 - i, &used), utf8);
		} else {
			used = length = str_utf8_length(text + i, text_size - 1 - i);
			assert(length);
			memcpy(utf8, text + i, length);
		}
		/* A character is copied as a whole or not at all. */
		if (length >= ret_size - n || !utf8[0])
			break;
		memcpy(ret + n, utf8, length);
		n += length;
		i += used;
	}
	ret[n] = '\0';
	return i == text_size - 1;
}
