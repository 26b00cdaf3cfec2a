/* SPDX-License-Identifier: MIT */
/*
 * Opcodes and fields are those that ptxas 13.0 makes for sm_75 to sm_121 of bar.sync, bar.red, bar.arrive and
 * bar.warp.sync; of these they are the same in all, but for the register of WARPSYNC and distances.  That of BSYNC is
 * what it makes of nested loops for sm_75, sm_90, sm_100 and sm_120, which have B0 to B9.  That of
 * cp.async.mbarrier.arrive is what it makes for sm_80, sm_90, sm_100 and sm_120.  Those of barrier.cluster are the same
 * from sm_90, the first one with clusters, to sm_121.  Those of NANOSLEEP are what ptxas 12.4 makes of nanosleep.u32
 * for sm_70 to sm_90 (tests/peers/barrier); of later ones it is not told.
 */
#include "waits/sass.h"

#include <errno.h>

#include "base/reader.h"
#include "waits/sass_word.h"

#define WARP_LANES 32u

bool waits_sass_known(const char *arch)
{
	return waits_sass_age_of(arch) < WAITS_SASS_AGE_COUNT;
}

/* Where barrier number and count of threads are. */
static void read_barrier(struct waits_sass_word w, struct waits_sass *ret)
{
	enum { BOTH = 0xb1d, ID = 0x91d, COUNT = 0x51d };
	unsigned int form = waits_sass_form(w);
	uint8_t reg = (uint8_t)waits_sass_bits(w.low, 32, 8);

	ret->op = w.high >> 13 & 1 ? WAITS_SASS_ARRIVE : WAITS_SASS_BARRIER;
	if (form == BOTH || form == ID)
		ret->id = (uint8_t)waits_sass_bits(w.low, 54, 4);
	else
		ret->id_register = reg;
	if (form == BOTH || form == COUNT)
		ret->count = (uint16_t)waits_sass_bits(w.low, 42, 12);
	else
		ret->count_register = reg;
}

/* Opcodes of arithmetic have even forms here; those that transfer control odd ones, one for each kind of operand. */
static bool is_transfer(unsigned int form)
{
	if (!(form & 0x100))
		return false;
	switch (form & 0xff) {
	case 0x43: /* CALL.ABS */
	case 0x44: /* CALL.REL */
	case 0x47: /* BRA */
	case 0x49: /* BRX */
	case 0x4a: /* JMP */
	case 0x4c: /* JMX */
	case 0x58: /* BRXU */
	case 0x59: /* JMXU */
		return true;
	default:
		return false;
	}
}

int waits_sass_read(const char *arch, const void *bytes, size_t size, struct waits_sass *ret)
{
	const enum waits_sass_age age = waits_sass_age_of(arch);
	struct reader r;
	struct waits_sass_word w;

	if (age == WAITS_SASS_AGE_COUNT)
		return -ENOTSUP;
	if (size < WAITS_SASS_BYTES)
		return -EINVAL;
	reader_init(&r, bytes, WAITS_SASS_BYTES);
	w = waits_sass_word_take(&r);
	*ret = (struct waits_sass){ .id_register = WAITS_SASS_NO_REGISTER, .count_register = WAITS_SASS_NO_REGISTER,
				    .mask_register = WAITS_SASS_NO_REGISTER };
	if (is_transfer(waits_sass_form(w)))
		ret->op = WAITS_SASS_TRANSFER;
	switch (waits_sass_form(w)) {
	case 0xb1d:
	case 0x91d:
	case 0x51d:
	case 0x31d:
		read_barrier(w, ret);
		break;
	case 0x9b0:
		ret->op = WAITS_SASS_COPY_ARRIVES;
		break;
	case 0x948:
		ret->op = WAITS_SASS_WARP_SYNC;
		/* WARPSYNC.ALL has no mask. */
		ret->mask = waits_sass_bits(w.low, 32, 32) ? (uint32_t)waits_sass_bits(w.low, 32, 32) : UINT32_MAX;
		break;
	case 0x348:
		ret->op = WAITS_SASS_WARP_SYNC;
		ret->mask_register = (uint8_t)waits_sass_bits(w.low, age < WAITS_SASS_SM_90 ? 32 : 24, 8);
		break;
	case 0xb48:
		ret->op = WAITS_SASS_WARP_SYNC;
		ret->mask_is_constant = true;
		break;
	case 0x941:
		ret->op = WAITS_SASS_CONVERGE;
		ret->id = (uint8_t)waits_sass_bits(w.low, 16, 4);
		break;
	case 0x9c7:
		ret->op = WAITS_SASS_CLUSTER_ARRIVE;
		break;
	case 0xdc7:
		ret->op = WAITS_SASS_CLUSTER_WAIT;
		break;
	case 0x95d:
	case 0x35d: /* For as long as a register says. */
	case 0xb5d: /* As a constant of the launch says. */
		if (age <= WAITS_SASS_SM_90 && waits_sass_is_always(w))
			ret->op = WAITS_SASS_SLEEP;
		break;
	case 0x944: /* CALL.REL */
	case 0x947: /* BRA */
	case 0x547: /* BRA.U */
		ret->has_target = true;
		ret->target = WAITS_SASS_BYTES + waits_sass_distance(w, age);
		break;
	default:
		break;
	}
	return 0;
}

const char *waits_sass_name(enum waits_sass_op op)
{
	static const char *const names[WAITS_SASS_OP_COUNT] = { [WAITS_SASS_BARRIER] = "BAR.SYNC",
								 [WAITS_SASS_ARRIVE] = "BAR.ARV",
								 [WAITS_SASS_COPY_ARRIVES] = "ARRIVES.LDGSTSBAR",
								 [WAITS_SASS_WARP_SYNC] = "WARPSYNC",
								 [WAITS_SASS_CONVERGE] = "BSYNC",
								 [WAITS_SASS_CLUSTER_ARRIVE] = "UCGABAR_ARV",
								 [WAITS_SASS_CLUSTER_WAIT] = "UCGABAR_WAIT",
								 [WAITS_SASS_SLEEP] = "NANOSLEEP" };

	return op < WAITS_SASS_OP_COUNT ? names[op] : NULL;
}

enum waits_sass_missing waits_sass_missing(const struct waits_sass_barrier *b)
{
	uint32_t left = b->waiting + b->others;

	if (!b->count)
		return b->others ? WAITS_SASS_MISSING_ALL : WAITS_SASS_MISSING_NOBODY;
	/* Who has come without waiting is seen nowhere, and may have exited since. */
	if (left * WARP_LANES < b->count && !b->may_arrive)
		return WAITS_SASS_MISSING_EXITED;
	if (left * WARP_LANES < b->count && !b->others)
		return WAITS_SASS_MISSING_MAY_EXITED;
	if (!b->others || b->waiting * WARP_LANES >= b->count)
		return WAITS_SASS_MISSING_NOBODY;
	return left * WARP_LANES == b->count && !b->may_arrive ? WAITS_SASS_MISSING_ALL : WAITS_SASS_MISSING_SOME;
}
