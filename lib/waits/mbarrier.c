/* SPDX-License-Identifier: MIT */
/*
 * The fields of the object are those of the words that ptxas makes for mbarrier.init; those of the instructions are
 * what ptxas 13.0 makes of mbarrier.try_wait for sm_90 to sm_121, which differ in the register that is uniform.
 */
#include "waits/mbarrier.h"

#include <errno.h>
#include <string.h>

#include "base/reader.h"
#include "waits/sass.h"

/* Behind a wait are at most a sleep, a test of the same object, the cache's turn and branches. */
#define BEHIND_MAX 4u

/* Low 12 bits of instructions. */
enum { PHASECHK = 0x5a7, CCTL = 0x98f, NANOSLEEP = 0x95d, BRA = 0x947, EXIT = 0x94d };

/* The first has six bits for a uniform register, the others have eight. */
static const char *const archs[] = { "sm_90", "sm_100", "sm_103", "sm_110", "sm_120", "sm_121" };
#define N_ARCHS (sizeof(archs) / sizeof(archs[0]))

static size_t arch_of(const char *name)
{
	for (size_t i = 0; name && i < N_ARCHS; i++)
		if (!strcmp(archs[i], name))
			return i;
	return N_ARCHS;
}

bool waits_mbarrier_known(const char *arch)
{
	return arch_of(arch) < N_ARCHS;
}

static uint64_t bits(uint64_t word, unsigned int at, unsigned int width)
{
	return word >> at & ((UINT64_C(1) << width) - 1);
}

/* @return the value of a field with a sign. */
static int64_t signed_bits(uint64_t word, unsigned int at, unsigned int width)
{
	uint64_t sign = UINT64_C(1) << (width - 1);

	return (int64_t)((bits(word, at, width) ^ sign) - sign);
}

/* Guarded by no predicate. */
static bool is_always(uint64_t low)
{
	return bits(low, 12, 4) == 7;
}

static bool is_wait(uint64_t low, uint64_t high)
{
	return bits(low, 0, 12) == PHASECHK && bits(high, 8, 1) && is_always(low);
}

/* Does it belong to the wait in front of it?  What always leads away is the last one that does. */
static bool belongs(uint64_t low, uint64_t high, uint64_t wait, uint64_t wait_high)
{
	switch (bits(low, 0, 12)) {
	case PHASECHK:
		/* The same operands, and no wait of its own. */
		return low >> 16 == wait >> 16 && bits(high, 0, 8) == bits(wait_high, 0, 8) && !bits(high, 8, 1);
	case EXIT:
		return !is_always(low);
	case CCTL:
	case NANOSLEEP:
	case BRA:
		return true;
	default:
		return false;
	}
}

static uint8_t count_behind(struct reader r, uint64_t wait, uint64_t wait_high)
{
	uint8_t n = 0;

	while (n < BEHIND_MAX && reader_left(&r) >= WAITS_SASS_BYTES) {
		uint64_t low = reader_u64(&r), high = reader_u64(&r);

		if (!belongs(low, high, wait, wait_high))
			break;
		n++;
		if (bits(low, 0, 12) == BRA && is_always(low))
			break;
	}
	return n;
}

int waits_mbarrier_find(const char *arch, const void *code, size_t size, size_t *at, struct waits_mbarrier_wait *ret)
{
	const size_t number = arch_of(arch);
	const uint8_t none = number ? 0xff : 0x3f;
	struct reader r;

	if (number == N_ARCHS)
		return -ENOTSUP;
	for (; *at <= size && size - *at >= WAITS_SASS_BYTES; *at += WAITS_SASS_BYTES) {
		uint64_t low, high;
		uint8_t uniform;

		reader_init(&r, (const uint8_t *)code + *at, size - *at);
		low = reader_u64(&r);
		high = reader_u64(&r);
		if (!is_wait(low, high))
			continue;
		uniform = (uint8_t)bits(high, 0, number ? 8 : 6);
		*ret = (struct waits_mbarrier_wait){
			.address_register = (uint8_t)bits(low, 24, 8),
			.uniform_register = uniform == none ? WAITS_MBARRIER_NO_REGISTER : uniform,
			.phase_register = (uint8_t)bits(low, 32, 8),
			.offset = (int32_t)signed_bits(low, 40, 24),
			.behind = count_behind(r, low, high),
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
		.pending = (uint32_t)((all - bits(word, 43, 20)) % all),
		.expected = (uint32_t)((all - bits(word, 1, 20)) % all),
		.tx = (int32_t)signed_bits(word, 21, 22),
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
