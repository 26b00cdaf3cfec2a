/* SPDX-License-Identifier: MIT */
#include "values/scalar.h"

#include <math.h>
#include <string.h>

#define RAW_BYTES_MAX 64u

__extension__ typedef __int128 int128;
__extension__ typedef unsigned __int128 uint128;

static uint128 load(const void *bytes, size_t size)
{
	const uint8_t *p = bytes;
	uint128 v = 0;

	for (size_t i = size; i-- > 0;)
		v = v << 8 | p[i];
	return v;
}

static int128 load_signed(const void *bytes, size_t size)
{
	unsigned unused = 128 - 8 * (unsigned)size;

	return (int128)(load(bytes, size) << unused) >> unused;
}

static void print_decimal(uint128 v, bool negative, struct out *o)
{
	char digits[40] /* 2^128 has 39 */, *p = digits + sizeof(digits);

	do {
		*--p = (char)('0' + (int)(v % 10));
		v /= 10;
	} while (v);
	if (negative)
		out_char(o, '-');
	out_bytes(o, p, (size_t)(digits + sizeof(digits) - p));
}

static void print_signed(int128 v, struct out *o)
{
	print_decimal(v < 0 ? -(uint128)v : (uint128)v, v < 0, o);
}

static void print_hex(uint128 v, struct out *o)
{
	if (v >> 64)
		out_fmt(o, "0x%llx%016llx", (unsigned long long)(v >> 64), (unsigned long long)v);
	else
		out_hex(o, (uint64_t)v);
}

/* In the order of memory, because nothing is known of its parts. */
static void print_bytes(const uint8_t *p, size_t size, struct out *o)
{
	for (size_t i = 0; i < size && i < RAW_BYTES_MAX; i++)
		out_fmt(o, i && i % 8 == 0 ? " %02x" : "%02x", p[i]);
	if (size > RAW_BYTES_MAX)
		out_str(o, "...");
}

static void print_raw(const void *bytes, size_t size, struct out *o)
{
	if (size > sizeof(uint128))
		print_bytes(bytes, size, o);
	else
		print_hex(load(bytes, size), o);
}

/* C's escapes of the characters from 7 on. */
static const char escapes[] = "abtnvfr";

/*
 * May it stand in a line of text?  Not what a terminal obeys, nor what has no meaning, nor what
 * cannot be seen, changes the direction or breaks lines (U+200B to U+200F and others).
 */
static bool is_printable(uint32_t code)
{
	if (code < 0x20 || (code >= 0x7f && code < 0xa0) || (code >= 0xd800 && code < 0xe000))
		return false;
	if ((code >= 0x200b && code <= 0x200f) || (code >= 0x2028 && code <= 0x202e) ||
	    (code >= 0x2060 && code <= 0x206f) || code == 0xfeff)
		return false;
	return code <= 0x10ffff && (code & 0xfffe) != 0xfffe && (code < 0xfdd0 || code > 0xfdef);
}

static void print_utf8(uint32_t code, struct out *o)
{
	if (code < 0x80) {
		out_char(o, (char)code);
		return;
	}
	if (code < 0x800) {
		out_char(o, (char)(0xc0 | code >> 6));
	} else {
		if (code < 0x10000) {
			out_char(o, (char)(0xe0 | code >> 12));
		} else {
			out_char(o, (char)(0xf0 | code >> 18));
			out_char(o, (char)(0x80 | (code >> 12 & 0x3f)));
		}
		out_char(o, (char)(0x80 | (code >> 6 & 0x3f)));
	}
	out_char(o, (char)(0x80 | (code & 0x3f)));
}

void values_character_print(uint32_t code, char quote, struct out *o)
{
	if (code >= 7 && code < 7 + sizeof(escapes) - 1)
		out_fmt(o, "\\%c", escapes[code - 7]);
	else if (code == '\\' || code == (unsigned char)quote)
		out_fmt(o, "\\%c", (char)code);
	else if (is_printable(code))
		print_utf8(code, o);
	else if (code <= 0777)
		out_fmt(o, "\\%03o", code);
	else
		out_fmt(o, "\\x%x", code);
}

static void print_character(const struct values_scalar *s, const void *bytes, struct out *o)
{
	uint128 v = load(bytes, s->size);
	const char *prefix = "";

	if (s->encoding == VALUES_SIGNED_CHAR)
		print_signed(load_signed(bytes, s->size), o);
	else
		print_decimal(v, false, o);
	if (s->encoding == VALUES_UTF)
		prefix = s->size == 1 ? "u8" : s->size == 2 ? "u" : "U";
	out_fmt(o, " %s'", prefix);
	/* A byte above 127 is no character by itself, whatever the text is written in. */
	if (s->size == 1 && v >= 0x80)
		out_fmt(o, "\\%03o", (unsigned)v);
	else
		values_character_print((uint32_t)v, '\'', o);
	out_char(o, '\'');
}

/* The parts of a floating point number: bits of the exponent and of the fraction. */
struct float_form {
	unsigned exponent, fraction;
};

static bool float_form(const struct values_scalar *s, struct float_form *ret)
{
	static const struct float_form ieee[] = { [2] = { 5, 10 }, [4] = { 8, 23 }, [8] = { 11, 52 } };

	if (s->encoding == VALUES_BFLOAT && s->size == 2)
		*ret = (struct float_form){ 8, 7 };
	else if (s->encoding == VALUES_FLOAT && (s->size == 2 || s->size == 4 || s->size == 8))
		*ret = ieee[s->size];
	else
		return false;
	return true;
}

/* @return the number, exactly: each form is part of double.  @p ret_nan is its fraction, else 0. */
static double decode(uint64_t bits, const struct float_form *form, uint64_t *ret_nan)
{
	uint64_t fraction = bits & ((UINT64_C(1) << form->fraction) - 1);
	unsigned top = (1u << form->exponent) - 1;
	unsigned exponent = (unsigned)(bits >> form->fraction) & top;
	int scale = (int)(exponent ? exponent : 1) - (int)(top / 2) - (int)form->fraction;
	double v;

	*ret_nan = exponent == top ? fraction : 0;
	if (exponent == top)
		v = fraction ? (double)NAN : (double)INFINITY;
	else
		v = ldexp((double)(exponent ? fraction | UINT64_C(1) << form->fraction : fraction), scale);
	return copysign(v, bits >> (form->fraction + form->exponent) & 1 ? -1.0 : 1.0);
}

bool values_scalar_float(const struct values_scalar *s, const void *bytes, double *ret)
{
	struct float_form form;
	uint64_t nan;

	if (!float_form(s, &form))
		return false;
	*ret = decode((uint64_t)load(bytes, s->size), &form, &nan);
	return true;
}

static void print_float(const struct values_scalar *s, const void *bytes, struct out *o)
{
	int digits = s->size == 2 ? 5 : s->size == 4 ? 9 : 17;
	struct float_form form;
	uint64_t nan;
	double v;

	if (!float_form(s, &form)) {
		print_raw(bytes, s->size, o);
		return;
	}
	v = decode((uint64_t)load(bytes, s->size), &form, &nan);
	if (!nan)
		out_fmt(o, "%.*g", digits, v);
	else if (form.fraction > 32)
		out_fmt(o, "%snan(0x%x%08x)", signbit(v) ? "-" : "", (unsigned)(nan >> 32), (unsigned)nan);
	else
		out_fmt(o, "%snan(0x%x)", signbit(v) ? "-" : "", (unsigned)nan);
}

static void print_bool(const void *bytes, size_t size, struct out *o)
{
	uint128 v = load(bytes, size);

	if (v > 1)
		print_decimal(v, false, o);
	else
		out_str(o, v ? "true" : "false");
}

static void print_pointer(const struct values_scalar *s, const void *bytes, struct out *o)
{
	if (s->space)
		out_fmt(o, "@%s ", s->space);
	print_hex(load(bytes, s->size), o);
}

static void print_natural(const struct values_scalar *s, const void *bytes, struct out *o)
{
	switch (s->encoding) {
	case VALUES_BOOL:
		print_bool(bytes, s->size, o);
		break;
	case VALUES_SIGNED:
		print_signed(load_signed(bytes, s->size), o);
		break;
	case VALUES_UNSIGNED:
		print_decimal(load(bytes, s->size), false, o);
		break;
	case VALUES_SIGNED_CHAR:
	case VALUES_UNSIGNED_CHAR:
	case VALUES_UTF:
		print_character(s, bytes, o);
		break;
	case VALUES_FLOAT:
	case VALUES_BFLOAT:
		print_float(s, bytes, o);
		break;
	case VALUES_POINTER:
		print_pointer(s, bytes, o);
		break;
	default:
		print_raw(bytes, s->size, o);
	}
}

/* Show the bytes as another type would. */
static void print_as(enum values_encoding encoding, uint32_t size, const void *bytes, struct out *o)
{
	const struct values_scalar as = { encoding, size, NULL };

	print_natural(&as, bytes, o);
}

static bool is_integer(const struct values_scalar *s)
{
	return s->encoding != VALUES_RAW && s->encoding != VALUES_FLOAT && s->encoding != VALUES_BFLOAT;
}

static void print_as_character(const struct values_scalar *s, const void *bytes, struct out *o)
{
	bool is_signed = s->encoding == VALUES_SIGNED || s->encoding == VALUES_SIGNED_CHAR;
	uint8_t low = (uint8_t)load(bytes, s->size);
	double v;

	/* A number with a fraction becomes an integer first, unless it has no such neighbour. */
	if (values_scalar_float(s, bytes, &v)) {
		is_signed = true;
		low = fabs(v) < 0x1p63 ? (uint8_t)(int64_t)v : 0;
	}
	print_as(is_signed ? VALUES_SIGNED_CHAR : VALUES_UNSIGNED_CHAR, 1, &low, o);
}

/* Show each two bytes as a number; what has an odd size is no such numbers. */
static void print_pairs(const struct values_scalar *s, enum values_encoding encoding, const uint8_t *bytes,
			struct out *o)
{
	if (s->size % 2) {
		print_natural(s, bytes, o);
		return;
	}
	out_str(o, s->size > 2 ? "{" : "");
	for (uint32_t at = 0; at < s->size; at += 2) {
		out_str(o, at ? ", " : "");
		print_as(encoding, 2, bytes + at, o);
	}
	out_str(o, s->size > 2 ? "}" : "");
}

void values_scalar_print(const struct values_scalar *s, enum values_format format, const void *bytes,
			 struct out *o)
{
	if (!s->size || s->size > sizeof(uint128)) {
		print_bytes(bytes, s->size, o);
		return;
	}
	switch (format) {
	case VALUES_HEX:
		print_raw(bytes, s->size, o);
		break;
	case VALUES_DECIMAL:
		print_as(VALUES_SIGNED, s->size, bytes, o);
		break;
	case VALUES_CHARACTER:
		print_as_character(s, bytes, o);
		break;
	case VALUES_HALF:
		print_pairs(s, VALUES_FLOAT, bytes, o);
		break;
	case VALUES_BFLOAT16:
		print_pairs(s, VALUES_BFLOAT, bytes, o);
		break;
	case VALUES_FLOATING:
		if (is_integer(s) && (s->size == 2 || s->size == 4 || s->size == 8))
			print_as(VALUES_FLOAT, s->size, bytes, o);
		else
			print_as(s->encoding, s->size, bytes, o);
		break;
	default:
		print_natural(s, bytes, o);
	}
}

uint64_t values_scalar_integer(const struct values_scalar *s, const void *bytes)
{
	if (!is_integer(s) || !s->size || s->size > sizeof(uint64_t))
		return 0;
	if (s->encoding == VALUES_SIGNED || s->encoding == VALUES_SIGNED_CHAR)
		return (uint64_t)load_signed(bytes, s->size);
	return (uint64_t)load(bytes, s->size);
}
