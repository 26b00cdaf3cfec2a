/* SPDX-License-Identifier: MIT */
#ifndef VALUES_VALUE_INTERNAL_H
#define VALUES_VALUE_INTERNAL_H

/** @file value_internal.h  Pieces of values' text; internal. */

#include "values/text/value.h"

/**
 * Append a string in quotes: no more than VALUES_ELEMENTS_MAX elements, and long runs as
 * `'a' <repeats 20 times>`.
 * @param s         Type of an element, of 1, 2 or 4 bytes.
 * @param has_more  The string goes on where it was read no further.
 */
void values_string_print(const struct values_scalar *s, const uint8_t *text, size_t n, bool has_more,
			 struct out *o);
/** @return the elements of an array that are shown: the last is not if it is 0. */
size_t values_string_length(const struct values_scalar *s, const uint8_t *text, size_t n);
/** Append the name of an enumerator, with that of its enumeration where the language wants it. */
void values_enumerator_print(const struct values_type *t, const struct values_enumerator *e, struct out *o);

/** @return whether a struct is a number that CUDA or HIP wraps, as __half; then which. */
bool values_wrapped_number(struct values_type *t, struct values_scalar *ret);
/**
 * Bring bits into bytes of their own.
 * @param bit    The first one.
 * @param size   At most 128.
 * @param bytes  16 of them, extended by the sign or by 0.
 */
void values_bits_extract(const uint8_t *from, uint64_t bit, uint32_t size, bool is_signed, uint8_t *bytes);
/** The same as values_node_init(), of bits. @param bit_size  0: whole bytes. */
int values_node_init_field(struct values_node *ret, const char *name, struct values_type *type,
			   const struct values_data *data, uint32_t bit, uint32_t bit_size, struct values_call *c);

#endif /* VALUES_VALUE_INTERNAL_H */
