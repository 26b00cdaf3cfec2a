/* SPDX-License-Identifier: MIT */
#ifndef VALUES_SCALAR_H
#define VALUES_SCALAR_H

/**
 * @file scalar.h
 * Values that have no parts: how their bytes (little endian) are shown, and which of them a type of
 * C, CUDA, HIP or OpenCL names.  The text is that of gdb and cuda-gdb, but for what is said below.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/out.h"

/** What the bytes of a scalar mean. */
enum values_encoding {
	VALUES_RAW, /**< Unknown: a hexadecimal number, or bytes when there are more than 16. */
	VALUES_BOOL,
	VALUES_SIGNED, /**< Two's complement. */
	VALUES_UNSIGNED,
	VALUES_SIGNED_CHAR, /**< Shown as a number and a character. */
	VALUES_UNSIGNED_CHAR,
	VALUES_UTF, /**< A code unit of UTF-8, UTF-16 or UTF-32. */
	VALUES_FLOAT, /**< IEEE 754, of 2, 4 or 8 bytes. */
	VALUES_BFLOAT, /**< The upper half of an IEEE number of 4 bytes. */
	VALUES_POINTER,
};

struct values_scalar {
	enum values_encoding encoding;
	uint32_t size; /**< Bytes. */
	/** Of a pointer: the memory that it leads into, as "shared"; NULL when that is not said. */
	const char *space;
};

/** How a scalar is shown; the letters are those that follow `print /` in gdb. */
enum values_format {
	VALUES_NATURAL = 0, /**< As its type wants it. */
	VALUES_HEX = 'x', /**< The bytes as an unsigned number in hexadecimal. */
	VALUES_DECIMAL = 'd', /**< The bytes as a signed number. */
	VALUES_CHARACTER = 'c', /**< The lowest byte as a character. */
	VALUES_FLOATING = 'f', /**< As floating point where one of this size exists, also of 2 bytes. */
	/* Of our own: each two bytes as a number, `{1, 2}` where there are several, the lowest first. */
	VALUES_HALF = 'h', /**< As IEEE half precision. */
	VALUES_BFLOAT16 = 'b', /**< As bfloat16. */
};

/** Longest text of a scalar, in bytes, without NUL: raw bytes, the others are far shorter. */
#define VALUES_SCALAR_TEXT_MAX 160u

/**
 * Append a scalar's text.  Numbers are round trip safe.  Those of 2 bytes have 5 significant digits
 * (cuda-gdb writes them so), also the ones with 8 bits of precision, for which gdb writes 4.
 * A pointer with a space is `@shared 0x400`.
 * @param bytes  All @p s->size of them, at any alignment.
 */
void values_scalar_print(const struct values_scalar *s, enum values_format format, const void *bytes,
			 struct out *o);

/** Append a character without quotes, with gdb's escapes where it is not printable or is @p quote. */
void values_character_print(uint32_t code, char quote, struct out *o);

/**
 * @return an integer, boolean, character or pointer of at most 8 bytes, extended by its sign; 0 for
 *         others.
 */
uint64_t values_scalar_integer(const struct values_scalar *s, const void *bytes);
/**
 * Read a floating point number.
 * @return false when the scalar is none of 2, 4 or 8 bytes.
 */
bool values_scalar_float(const struct values_scalar *s, const void *bytes, double *ret);

/**
 * Tell what a type's name means on a GPU: `unsigned int`, `int const*`, `long long`, `__half`,
 * `size_t`, OpenCL's `uint`; all targets are 64-bit with a long of 8 bytes.  Words may come in any
 * order, as in C, with const, volatile and restrict among them.  A reference is a pointer.
 * @return 0, -ENOENT (a struct, or not known).
 */
int values_scalar_parse(const char *name, struct values_scalar *ret);

#endif /* VALUES_SCALAR_H */
