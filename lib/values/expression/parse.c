/* SPDX-License-Identifier: MIT */
/* Expressions from text: recursive descent. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "values/expression/expression_internal.h"

struct parser {
	const char *text, *at;
	struct values_expression *e;
	struct values_error *error;
	unsigned depth;
};

static int parse_conditional(struct parser *p, uint16_t *ret);
static int parse_unary(struct parser *p, uint16_t *ret);

int values_error_set(struct values_error *e, unsigned column, const char *fmt, ...)
{
	va_list ap;

	e->column = column;
	va_start(ap, fmt);
	(void)vsnprintf(e->text, sizeof(e->text), fmt, ap);
	va_end(ap);
	return -EINVAL;
}

static unsigned column_of(const struct parser *p)
{
	return (unsigned)(p->at - p->text) + 1;
}

static int fail(struct parser *p, const char *what)
{
	return values_error_set(p->error, column_of(p), "%s", what);
}

static void skip_blanks(struct parser *p)
{
	p->at += strspn(p->at, " \t\n\r");
}

/* Take a token if it comes next. */
static bool take(struct parser *p, const char *token)
{
	size_t n = strlen(token);

	skip_blanks(p);
	if (strncmp(p->at, token, n))
		return false;
	p->at += n;
	return true;
}

static int expect(struct parser *p, const char *token)
{
	skip_blanks(p);
	return take(p, token) ? 0 : values_error_set(p->error, column_of(p), "'%s' is missing", token);
}

static bool is_name_start(char c)
{
	return isalpha((unsigned char)c) || c == '_';
}

static size_t name_length(const char *at)
{
	size_t n = 0;

	if (is_name_start(at[0]))
		while (isalnum((unsigned char)at[n]) || at[n] == '_')
			n++;
	return n;
}

static bool is_word(const char *at, size_t n, const char *word)
{
	return strlen(word) == n && !strncmp(at, word, n);
}

static const char *keep_name(struct parser *p, const char *at, size_t n)
{
	char *name = p->e->names + p->e->names_used;

	memcpy(name, at, n);
	name[n] = '\0';
	p->e->names_used += n + 1;
	return name;
}

static unsigned depth_of(const struct values_expression *e, const struct values_term *t)
{
	unsigned depth = 0;

	/* Operands that are not there are term 0, which has none itself. */
	if (t->op == OP_NUMBER || t->op == OP_REAL || t->op == OP_NAME || t->op == OP_REGISTER ||
	    t->op == OP_SIZEOF_TYPE)
		return 1;
	if (e->terms[t->a].depth > depth)
		depth = e->terms[t->a].depth;
	if (t->op >= OP_CONDITIONAL || t->op == OP_LANE || t->op == OP_INDEX || t->op == OP_REPEAT)
		depth = e->terms[t->b].depth > depth ? e->terms[t->b].depth : depth;
	if (t->op == OP_CONDITIONAL)
		depth = e->terms[t->c].depth > depth ? e->terms[t->c].depth : depth;
	return depth + 1;
}

static int add(struct parser *p, struct values_term t, unsigned column, uint16_t *ret)
{
	struct values_expression *e = p->e;

	t.column = (uint16_t)column;
	t.depth = (uint16_t)depth_of(e, &t);
	if (t.depth > VALUES_EXPRESSION_CHAIN_MAX)
		return fail(p, "too many operators");
	if (vec_reserve(&e->terms, e->n, 1, &e->capacity, sizeof(t)) < 0)
		return -ENOMEM;
	e->terms[e->n] = t;
	*ret = (uint16_t)e->n++;
	return 0;
}

/* ------------------------------------------------------------------ numbers ------------------ */

static int parse_real(struct parser *p, uint16_t *ret)
{
	unsigned column = column_of(p);
	char *end;
	struct values_term t = { .op = OP_REAL, .encoding = VALUES_FLOAT, .size = 8, .real = strtod(p->at, &end) };

	p->at = end;
	if (*p->at == 'f' || *p->at == 'F') {
		t.size = 4;
		p->at++;
	}
	if (isalnum((unsigned char)*p->at) || *p->at == '_')
		return fail(p, "this does not belong to a number");
	return add(p, t, column, ret);
}

/* The first type that has room, as in C: unsigned ones only for hexadecimal numbers. */
static void choose_type(struct values_term *t, bool is_decimal, bool is_unsigned, bool is_long)
{
	bool fits_int = t->number <= INT32_MAX, fits_unsigned = t->number <= UINT32_MAX;

	if (is_long || (is_unsigned || !is_decimal ? !fits_unsigned : !fits_int))
		t->size = 8;
	else
		t->size = 4;
	if (is_unsigned || t->number > INT64_MAX || (!is_decimal && t->size == 4 && !fits_int))
		t->encoding = VALUES_UNSIGNED;
	else
		t->encoding = VALUES_SIGNED;
}

static int parse_integer(struct parser *p, uint16_t *ret)
{
	struct values_term t = { .op = OP_NUMBER };
	unsigned column = column_of(p);
	bool is_unsigned = false, is_long = false;
	int base = 10;
	char *end;

	if (p->at[0] == '0')
		base = p->at[1] == 'x' || p->at[1] == 'X' ? 16 : p->at[1] == 'b' || p->at[1] == 'B' ? 2 : 8;
	if (base == 2)
		p->at += 2;
	errno = 0;
	t.number = strtoull(p->at, &end, base);
	if (errno)
		return fail(p, "the number is too large");
	if (end == p->at || (base == 16 && end - p->at < 3))
		return fail(p, "this is no number");
	p->at = end;
	for (; *p->at == 'u' || *p->at == 'U' || *p->at == 'l' || *p->at == 'L'; p->at++) {
		is_unsigned = is_unsigned || *p->at == 'u' || *p->at == 'U';
		is_long = is_long || *p->at == 'l' || *p->at == 'L';
	}
	if (isalnum((unsigned char)*p->at) || *p->at == '_')
		return fail(p, "this does not belong to a number");
	choose_type(&t, base == 10, is_unsigned, is_long);
	return add(p, t, column, ret);
}

static int parse_number(struct parser *p, uint16_t *ret)
{
	size_t n = strspn(p->at, "0123456789");
	bool is_hex = p->at[0] == '0' && (p->at[1] == 'x' || p->at[1] == 'X');

	if (!is_hex && (p->at[n] == '.' || p->at[n] == 'e' || p->at[n] == 'E'))
		return parse_real(p, ret);
	return parse_integer(p, ret);
}

static int parse_character(struct parser *p, uint16_t *ret)
{
	static const char escapes[] = "a\ab\bf\fn\nr\rt\tv\v\\\\''\"\"??";
	struct values_term t = { .op = OP_NUMBER, .encoding = VALUES_SIGNED_CHAR, .size = 1 };
	unsigned column = column_of(p);
	const char *escape = NULL;
	char *end;

	p->at++;
	if (*p->at != '\\') {
		if (!*p->at || *p->at == '\'')
			return fail(p, "a character is missing");
		t.number = (uint64_t)(int64_t)(signed char)*p->at++;
	} else {
		p->at++;
		for (size_t i = 0; *p->at && escapes[i] && !escape; i += 2)
			if (escapes[i] == *p->at)
				escape = &escapes[i + 1];
		if (escape) {
			t.number = (uint64_t)*escape;
			p->at++;
		} else if (*p->at >= '0' && *p->at <= '7') {
			for (int i = 0; i < 3 && *p->at >= '0' && *p->at <= '7'; i++)
				t.number = t.number * 8 + (uint64_t)(*p->at++ - '0');
		} else if (*p->at == 'x' && isxdigit((unsigned char)p->at[1])) {
			t.number = strtoull(p->at + 1, &end, 16);
			p->at = end;
		} else {
			return fail(p, "there is no such escape");
		}
		t.number = (uint64_t)(int64_t)(int8_t)t.number;
	}
	if (*p->at != '\'')
		return fail(p, "' is missing");
	p->at++;
	return add(p, t, column, ret);
}

/* ------------------------------------------------------------------ types -------------------- */

static bool is_space(const char *at, size_t n, enum values_space *ret)
{
	static const struct {
		const char *word;
		enum values_space space;
	} words[] = {
		{ "global", VALUES_SPACE_GLOBAL }, { "private", VALUES_SPACE_PRIVATE },
		{ "local", VALUES_SPACE_PRIVATE }, { "scratch", VALUES_SPACE_PRIVATE },
		{ "shared", VALUES_SPACE_SHARED }, { "lds", VALUES_SPACE_SHARED },
		{ "constant", VALUES_SPACE_CONSTANT }, { "parameter", VALUES_SPACE_PARAMETER },
		{ "param", VALUES_SPACE_PARAMETER }, { "generic", VALUES_SPACE_GENERIC },
		{ "code", VALUES_SPACE_CODE },
	};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (is_word(at, n, words[i].word)) {
			*ret = words[i].space;
			return true;
		}
	return false;
}

static bool is_tag(const char *at, size_t n)
{
	return is_word(at, n, "struct") || is_word(at, n, "class") || is_word(at, n, "union") ||
	       is_word(at, n, "enum");
}

static bool is_qualifier(const char *at, size_t n)
{
	return is_word(at, n, "const") || is_word(at, n, "volatile");
}

/* What a name of a type is made of. */
struct type_words {
	char name[256];
	size_t used;
	unsigned words, stars;
	bool is_certain; /* It can be nothing but a type. */
	bool has_space;
	enum values_space space;
};

/* Take a name with its scopes, as a::b.  @return its length; 0: there is none. */
static size_t scoped_name(const char *at)
{
	size_t n = name_length(at), more;

	while (n && at[n] == ':' && at[n + 1] == ':' && (more = name_length(at + n + 2)))
		n += 2 + more;
	return n;
}

/*
 * Read what may be a type, up to what comes behind it.
 * @return false when it is none; the parser stands anywhere then.
 */
static bool read_type(struct parser *p, struct type_words *w)
{
	struct values_scalar s;
	size_t n;

	memset(w, 0, sizeof(*w));
	w->is_certain = take(p, "@");
	for (skip_blanks(p); (n = scoped_name(p->at)); skip_blanks(p)) {
		const char *word = p->at;

		p->at += n;
		skip_blanks(p);
		if (!w->words && !w->has_space && (is_name_start(*p->at) || w->is_certain) &&
		    is_space(word, n, &w->space)) {
			w->has_space = w->is_certain = true;
			continue;
		}
		if (is_tag(word, n) || is_qualifier(word, n)) {
			w->is_certain = true;
			continue;
		}
		if (n + 2 > sizeof(w->name) - w->used)
			return false;
		if (w->used)
			w->name[w->used++] = ' ';
		memcpy(w->name + w->used, word, n);
		w->used += n;
		w->words++;
	}
	while (take(p, "*"))
		w->stars++;
	skip_blanks(p);
	/* "sizeof" and the like never name a type, and two words are no variable. */
	if (w->words > 1 || (w->words && values_scalar_parse(w->name, &s) == 0) || is_word(w->name, w->used, "void"))
		w->is_certain = true;
	return w->words && w->stars < 16;
}

static struct values_term type_term(struct parser *p, enum values_op op, const struct type_words *w)
{
	return (struct values_term){ .op = op, .name = keep_name(p, w->name, w->used),
				     .stars = (uint8_t)w->stars, .has_space = w->has_space, .space = w->space };
}

/* Could an operand begin here, where none could if a variable came before? */
static bool starts_operand(const char *at)
{
	return is_name_start(*at) || isdigit((unsigned char)*at) || *at == '$' || *at == '(' || *at == '\'' ||
	       *at == '~' || (*at == '!' && at[1] != '=');
}

/*
 * Is it a type in parentheses?  Nothing is known of names here: a single one is a type when it has
 * a star behind it, or when an operand follows that could not follow a variable.
 */
static bool take_type(struct parser *p, struct type_words *w)
{
	const char *start = p->at;

	if (take(p, "(") && read_type(p, w) && take(p, ")")) {
		skip_blanks(p);
		if (w->is_certain || w->stars || starts_operand(p->at))
			return true;
	}
	p->at = start;
	return false;
}

/* ------------------------------------------------------------------ operands ----------------- */

static int parse_lane(struct parser *p, unsigned column, uint16_t *ret)
{
	struct values_term t = { .op = OP_LANE };
	int r = expect(p, "(");

	if (r == 0)
		r = parse_conditional(p, &t.a);
	if (r == 0)
		r = expect(p, ",");
	if (r == 0)
		r = parse_conditional(p, &t.b);
	if (r == 0)
		r = expect(p, ")");
	return r < 0 ? r : add(p, t, column, ret);
}

static int parse_register(struct parser *p, uint16_t *ret)
{
	struct values_term t = { .op = OP_REGISTER };
	unsigned column = column_of(p);
	size_t n = name_length(++p->at);

	if (!n)
		return fail(p, "the name of a register is missing");
	t.name = keep_name(p, p->at, n);
	p->at += n;
	skip_blanks(p);
	return is_word(t.name, n, "lane") && *p->at == '(' ? parse_lane(p, column, ret) : add(p, t, column, ret);
}

/* A variable; in front of its scope may be a file: `file.cu::x`. */
static int parse_name(struct parser *p, uint16_t *ret)
{
	struct values_term t = { .op = OP_NAME };
	unsigned column = column_of(p);
	size_t n = scoped_name(p->at), dot;

	dot = p->at[n] == '.' ? name_length(p->at + n + 1) : 0;
	if (dot && p->at[n + 1 + dot] == ':' && p->at[n + 2 + dot] == ':' && scoped_name(p->at + n + 3 + dot))
		n += 3 + dot + scoped_name(p->at + n + 3 + dot);
	t.name = keep_name(p, p->at, n);
	p->at += n;
	return add(p, t, column, ret);
}

static int parse_at_address(struct parser *p, uint16_t *ret)
{
	unsigned column = column_of(p);
	struct values_term t;
	struct type_words w;
	int r;

	p->at++;
	if (!read_type(p, &w))
		return fail(p, "a type is missing");
	t = type_term(p, OP_AT_ADDRESS, &w);
	r = expect(p, "}");
	if (r == 0)
		r = parse_unary(p, &t.a);
	return r < 0 ? r : add(p, t, column, ret);
}

static int parse_primary(struct parser *p, uint16_t *ret)
{
	int r;

	skip_blanks(p);
	if (isdigit((unsigned char)*p->at) || (*p->at == '.' && isdigit((unsigned char)p->at[1])))
		return parse_number(p, ret);
	if (*p->at == '\'')
		return parse_character(p, ret);
	if (*p->at == '$')
		return parse_register(p, ret);
	if (*p->at == '{')
		return parse_at_address(p, ret);
	if (is_name_start(*p->at))
		return parse_name(p, ret);
	if (!take(p, "("))
		return fail(p, *p->at ? "an operand is missing here" : "the expression ends too early");
	r = parse_conditional(p, ret);
	return r < 0 ? r : expect(p, ")");
}

/* A member by its place among all, for what no name means. */
static int parse_part(struct parser *p, enum values_op op, unsigned column, uint16_t *ret)
{
	struct values_term t = { .op = OP_PART };
	char *end;
	int r = 0;

	skip_blanks(p);
	if (!isdigit((unsigned char)*p->at))
		return fail(p, "the number of a member is missing");
	t.number = strtoull(p->at, &end, 10);
	p->at = end;
	if (op == OP_ARROW)
		r = add(p, (struct values_term){ .op = OP_DEREFERENCE, .a = *ret }, column, ret);
	if (r == 0)
		r = expect(p, ">");
	t.a = *ret;
	return r < 0 ? r : add(p, t, column, ret);
}

static int parse_member(struct parser *p, enum values_op op, unsigned column, uint16_t *ret)
{
	struct values_term t = { .op = op, .a = *ret };
	size_t n;

	if (take(p, "<"))
		return parse_part(p, op, column, ret);
	skip_blanks(p);
	n = name_length(p->at);
	if (!n)
		return fail(p, "the name of a member is missing");
	t.name = keep_name(p, p->at, n);
	p->at += n;
	return add(p, t, column, ret);
}

static int parse_index(struct parser *p, unsigned column, uint16_t *ret)
{
	struct values_term t = { .op = OP_INDEX, .a = *ret };
	int r = parse_conditional(p, &t.b);

	if (r == 0)
		r = expect(p, "]");
	return r < 0 ? r : add(p, t, column, ret);
}

static int parse_postfix(struct parser *p, uint16_t *ret)
{
	int r = parse_primary(p, ret);

	while (r == 0) {
		unsigned column;

		skip_blanks(p);
		column = column_of(p);
		if (take(p, "["))
			r = parse_index(p, column, ret);
		else if (take(p, "->"))
			r = parse_member(p, OP_ARROW, column, ret);
		else if (take(p, "."))
			r = parse_member(p, OP_MEMBER, column, ret);
		else if (*p->at == '(')
			return fail(p, "functions cannot be called");
		else
			return 0;
	}
	return r;
}

static int parse_sizeof(struct parser *p, unsigned column, uint16_t *ret)
{
	struct values_term t = { .op = OP_SIZEOF };
	struct type_words w;
	const char *start;
	int r;

	skip_blanks(p);
	start = p->at;
	if (take(p, "(") && read_type(p, &w) && take(p, ")") && (w.is_certain || w.stars))
		return add(p, type_term(p, OP_SIZEOF_TYPE, &w), column, ret);
	p->at = start;
	r = parse_unary(p, &t.a);
	return r < 0 ? r : add(p, t, column, ret);
}

static int parse_prefixed(struct parser *p, uint16_t *ret)
{
	static const struct {
		char sign;
		enum values_op op;
	} signs[] = { { '-', OP_NEGATE }, { '+', OP_PLUS }, { '!', OP_NOT }, { '~', OP_COMPLEMENT },
		      { '*', OP_DEREFERENCE }, { '&', OP_ADDRESS } };
	unsigned column = column_of(p);
	struct values_term t = { 0 };
	struct type_words w;
	int r;

	if (is_word(p->at, name_length(p->at), "sizeof")) {
		p->at += strlen("sizeof");
		return parse_sizeof(p, column, ret);
	}
	if (take_type(p, &w)) {
		t = type_term(p, OP_CAST, &w);
		r = parse_unary(p, &t.a);
		return r < 0 ? r : add(p, t, column, ret);
	}
	for (size_t i = 0; i < sizeof(signs) / sizeof(signs[0]); i++)
		if (*p->at == signs[i].sign) {
			p->at++;
			t.op = signs[i].op;
			r = parse_unary(p, &t.a);
			return r < 0 ? r : add(p, t, column, ret);
		}
	return parse_postfix(p, ret);
}

/* Every way to nest goes through here. */
static int parse_unary(struct parser *p, uint16_t *ret)
{
	int r;

	skip_blanks(p);
	if (p->depth == 2 * VALUES_EXPRESSION_DEPTH_MAX)
		return fail(p, "this is nested too deeply");
	p->depth++;
	r = parse_prefixed(p, ret);
	p->depth--;
	return r;
}

/* ------------------------------------------------------------------ two operands ------------- */

struct operator {
	const char *text;
	enum values_op op;
	unsigned precedence;
};

/* Longer ones come before those that they begin with. */
static const struct operator operators[] = {
	{ "||", OP_LOGICAL_OR, 1 },   { "&&", OP_LOGICAL_AND, 2 }, { "==", OP_EQUAL, 6 },
	{ "!=", OP_NOT_EQUAL, 6 },    { "<<", OP_SHIFT_LEFT, 8 },  { ">>", OP_SHIFT_RIGHT, 8 },
	{ "<=", OP_LESS_EQUAL, 7 },   { ">=", OP_GREATER_EQUAL, 7 }, { "|", OP_OR, 3 },
	{ "^", OP_XOR, 4 },	      { "&", OP_AND, 5 },	   { "<", OP_LESS, 7 },
	{ ">", OP_GREATER, 7 },	      { "+", OP_ADD, 9 },	   { "-", OP_SUBTRACT, 9 },
	{ "*", OP_MULTIPLY, 10 },     { "/", OP_DIVIDE, 10 },	   { "%", OP_REMAINDER, 10 },
};

static const struct operator *next_operator(struct parser *p)
{
	skip_blanks(p);
	for (size_t i = 0; i < sizeof(operators) / sizeof(operators[0]); i++)
		if (!strncmp(p->at, operators[i].text, strlen(operators[i].text)))
			return &operators[i];
	return NULL;
}

static int parse_binary(struct parser *p, unsigned least, uint16_t *ret)
{
	const struct operator *o;
	int r = parse_unary(p, ret);

	while (r == 0 && (o = next_operator(p)) && o->precedence >= least) {
		struct values_term t = { .op = o->op, .a = *ret };
		unsigned column = column_of(p);

		p->at += strlen(o->text);
		if (*p->at == '=')
			return fail(p, "nothing can be assigned to");
		r = parse_binary(p, o->precedence + 1, &t.b);
		if (r == 0)
			r = add(p, t, column, ret);
	}
	return r;
}

static int parse_choice(struct parser *p, uint16_t *ret)
{
	struct values_term t = { .op = OP_CONDITIONAL };
	unsigned column;
	int r = parse_binary(p, 1, ret);

	skip_blanks(p);
	column = column_of(p);
	if (r < 0 || !take(p, "?"))
		return r;
	t.a = *ret;
	r = parse_conditional(p, &t.b);
	if (r == 0)
		r = expect(p, ":");
	if (r == 0)
		r = parse_conditional(p, &t.c);
	return r < 0 ? r : add(p, t, column, ret);
}

static int parse_conditional(struct parser *p, uint16_t *ret)
{
	int r;

	if (p->depth == 2 * VALUES_EXPRESSION_DEPTH_MAX)
		return fail(p, "this is nested too deeply");
	p->depth++;
	r = parse_choice(p, ret);
	p->depth--;
	return r;
}

/* ------------------------------------------------------------------ the whole ---------------- */

static int parse_format(struct parser *p)
{
	char letter = *p->at;

	if (!letter || !strchr("xdfchb", letter) || isalnum((unsigned char)p->at[1]))
		return fail(p, "a format is x, d, f, c, h or b");
	p->e->format = (enum values_format)letter;
	p->at++;
	return 0;
}

static int parse_repeat(struct parser *p)
{
	struct values_term t = { .op = OP_REPEAT, .a = p->e->root };
	unsigned column = column_of(p);
	int r;

	if (!take(p, "@"))
		return 0;
	r = parse_conditional(p, &t.b);
	return r < 0 ? r : add(p, t, column, &p->e->root);
}

static int keep_body(struct parser *p, const char *start)
{
	size_t n = (size_t)(p->at - start);

	while (n && strchr(" \t\n\r", start[n - 1]))
		n--;
	p->e->body = strndup(start, n);
	return p->e->body ? 0 : -ENOMEM;
}

static int parse_whole(struct parser *p)
{
	const char *start;
	int r = 0;

	if (take(p, "/"))
		r = parse_format(p);
	skip_blanks(p);
	start = p->at;
	if (r == 0)
		r = parse_conditional(p, &p->e->root);
	if (r == 0)
		r = keep_body(p, start);
	skip_blanks(p);
	if (r == 0)
		r = parse_repeat(p);
	if (r == 0 && take(p, ",")) {
		(void)take(p, "/");
		skip_blanks(p);
		r = parse_format(p);
	}
	skip_blanks(p);
	if (r == 0 && *p->at == '=')
		return fail(p, "nothing can be assigned to");
	return r == 0 && *p->at ? fail(p, "this does not belong here") : r;
}

int values_expression_parse(const char *text, struct values_expression **ret, struct values_error *ret_error)
{
	struct parser p = { .text = text, .at = text, .error = ret_error };
	size_t size = strlen(text);
	int r;

	*ret_error = (struct values_error){ 0 };
	if (size > VALUES_EXPRESSION_MAX)
		return values_error_set(ret_error, 0, "an expression has at most %u characters",
					VALUES_EXPRESSION_MAX);
	p.e = calloc(1, sizeof(*p.e));
	if (!p.e)
		return -ENOMEM;
	/* Each name is followed by something, if only by the end. */
	p.e->names = malloc(2 * size + 2);
	r = p.e->names ? parse_whole(&p) : -ENOMEM;
	if (r < 0) {
		values_expression_destroy(p.e);
		return r;
	}
	*ret = p.e;
	return 0;
}

void values_expression_destroy(struct values_expression *e)
{
	if (!e)
		return;
	free(e->terms);
	free(e->names);
	free(e->body);
	free(e);
}
