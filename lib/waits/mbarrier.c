/* SPDX-License-Identifier: MIT */
/*
 * The fields of the object are those of the words that ptxas makes for mbarrier.init; those of the instructions are
 * what ptxas 13.0 makes of mbarrier.try_wait for sm_90 to sm_121, which differ in the register that is uniform.
 */
#include "waits/mbarrier.h"

#include <errno.h>

#include "base/reader.h"
#include "waits/sass_word.h"

/* Behind a wait are at most a sleep, a test of the same object, the cache's turn and branches. */
#define BEHIND_MAX 4u

/* Low 12 bits of instructions. */
enum { PHASECHK = 0x5a7, CCTL = 0x98f, NANOSLEEP = 0x95d, BRA = 0x947, EXIT = 0x94d };

bool waits_mbarrier_known(const char *arch)
{
	const enum waits_sass_age age = waits_sass_age_of(arch);

	return age >= WAITS_SASS_SM_90 && age < WAITS_SASS_AGE_COUNT;
}

static bool is_wait(struct waits_sass_word w)
{
	return waits_sass_form(w) == PHASECHK && waits_sass_bits(w.high, 8, 1) && waits_sass_is_always(w);
}

/* Does it belong to the wait in front of it?  What always leads away is the last one that does. */
static bool belongs(struct waits_sass_word w, struct waits_sass_word wait)
{
	switch (waits_sass_form(w)) {
	case PHASECHK:
		/* The same operands, and no wait of its own. */
		return w.low >> 16 == wait.low >> 16 &&
		       waits_sass_bits(w.high, 0, 8) == waits_sass_bits(wait.high, 0, 8) &&
		       !waits_sass_bits(w.high, 8, 1);
	case EXIT:
		return !waits_sass_is_always(w);
	case CCTL:
	case NANOSLEEP:
	case BRA:
		return true;
	default:
		return false;
	}
}

static uint8_t count_behind(struct reader r, struct waits_sass_word wait)
{
	uint8_t n = 0;

	while (n < BEHIND_MAX && reader_left(&r) >= WAITS_SASS_BYTES) {
		struct waits_sass_word w = waits_sass_word_take(&r);

		if (!belongs(w, wait))
			break;
		n++;
		if (waits_sass_form(w) == BRA && waits_sass_is_always(w))
			break;
	}
	return n;
}

int waits_mbarrier_find(const char *arch, const void *code, size_t size, size_t *at, struct waits_mbarrier_wait *ret)
{
	/* The first of them has six bits for a uniform register, the others have eight. */
	const unsigned int width = waits_sass_age_of(arch) == WAITS_SASS_SM_90 ? 6 : 8;
	struct reader r;

	if (!waits_mbarrier_known(arch))
		return -ENOTSUP;
	for (; *at <= size && size - *at >= WAITS_SASS_BYTES; *at += WAITS_SASS_BYTES) {
		struct waits_sass_word w;
		uint8_t uniform;

		reader_init(&r, (const uint8_t *)code + *at, size - *at);
		w = waits_sass_word_take(&r);
		if (!is_wait(w))
			continue;
		uniform = (uint8_t)waits_sass_bits(w.high, 0, width);
		*ret = (struct waits_mbarrier_wait){
			.address_register = (uint8_t)waits_sass_bits(w.low, 24, 8),
			.uniform_register = uniform == (1u << width) - 1 ? WAITS_MBARRIER_NO_REGISTER : uniform,
			.phase_register = (uint8_t)waits_sass_bits(w.low, 32, 8),
			.offset = (int32_t)waits_sass_signed_bits(w.low, 40, 24),
			.behind = count_behind(r, w),
		};
		return 0;
	}
	return -ENOENT;
}

const char *waits_mbarrier_name(void)
{
	return "SYNCS.PHASECHK.TRYWAIT";
}

int waits_mbarrier_read(uint64_t word, struct waits_mbarrier *ret)
{
	const uint64_t all = UINT64_C(1) << 20;

	/* It would pass for one, but is what filled or lost memory reads like. */
	if (word == UINT64_MAX)
		return -EINVAL;
	*ret = (struct waits_mbarrier){
		.phase = word >> 63,
		/* Counted up to 2^20: a field of 0 has none left. */
		.pending = (uint32_t)((all - waits_sass_bits(word, 43, 20)) % all),
		.expected = (uint32_t)((all - waits_sass_bits(word, 1, 20)) % all),
		.tx = (int32_t)waits_sass_signed_bits(word, 21, 22),
	};
	if (!ret->expected || ret->expected > WAITS_MBARRIER_EXPECTED_MAX || ret->pending > ret->expected)
		return -EINVAL;
	/* PTX has these limits for copies (tx-count). */
	if (ret->tx >= (int32_t)all || ret->tx <= -(int32_t)all)
		return -EINVAL;
	return ret->pending || ret->tx ? 0 : -EINVAL;
}

bool waits_mbarrier_blocks(const struct waits_mbarrier *m, uint32_t phase_register)
{
	return m->phase == phase_register >> 31;
}
