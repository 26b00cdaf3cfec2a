/* SPDX-License-Identifier: MIT */
#ifndef WAITS_SASS_WORD_H
#define WAITS_SASS_WORD_H

/** @file sass_word.h  Instructions of NVIDIA devices as words, and which devices have which.  Internal. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/reader.h"
#include "waits/sass.h"

/** Devices whose encodings agree, as far as they are looked at; ascending. */
enum waits_sass_age {
	WAITS_SASS_SM_70, /**< To sm_75. */
	WAITS_SASS_SM_80, /**< To sm_89. */
	WAITS_SASS_SM_90,
	WAITS_SASS_SM_100, /**< To sm_121. */
	WAITS_SASS_AGE_COUNT, /**< Stands for a device that is not known. */
};

/** @param arch  Such as "sm_90"; NULL is no device that is known. */
enum waits_sass_age waits_sass_age_of(const char *arch);

/** An instruction. */
struct waits_sass_word {
	uint64_t low, high;
};

/** Take the next one; zero behind the end. */
static inline struct waits_sass_word waits_sass_word_take(struct reader *r)
{
	struct waits_sass_word w;

	w.low = reader_u64(r);
	w.high = reader_u64(r);
	return w;
}

/** @return the one at a place, all of which is in the code. */
static inline struct waits_sass_word waits_sass_word_at(const uint8_t *code, size_t at)
{
	struct reader r;

	reader_init(&r, code + at, WAITS_SASS_BYTES);
	return waits_sass_word_take(&r);
}

/** @return a field; @p width is less than 64. */
static inline uint64_t waits_sass_bits(uint64_t word, unsigned int at, unsigned int width)
{
	return word >> at & ((UINT64_C(1) << width) - 1);
}

/** @return a field with a sign. */
static inline int64_t waits_sass_signed_bits(uint64_t word, unsigned int at, unsigned int width)
{
	uint64_t sign = UINT64_C(1) << (width - 1);

	return (int64_t)((waits_sass_bits(word, at, width) ^ sign) - sign);
}

/** @return the operation, and of what kind its operands are. */
static inline unsigned int waits_sass_form(struct waits_sass_word w)
{
	return (unsigned int)waits_sass_bits(w.low, 0, 12);
}

/** @return whether no predicate guards it. */
static inline bool waits_sass_is_always(struct waits_sass_word w)
{
	return waits_sass_bits(w.low, 12, 4) == 7;
}

/** @return how far a relative branch or call leads from the next instruction. */
int64_t waits_sass_distance(struct waits_sass_word w, enum waits_sass_age age);

#endif /* WAITS_SASS_WORD_H */
