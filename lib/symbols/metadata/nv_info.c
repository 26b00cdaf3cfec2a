/* SPDX-License-Identifier: MIT */
/*
 * Attributes one behind the other: format, code, then 16 bits, which are the size of a value behind
 * them where the format says so (docs/reference/kernel-arguments.md).
 */
#include "symbols/metadata/nv_info.h"

#include <errno.h>

#include "base/reader.h"

enum {
	FORMAT_SIZED = 4,
	PARAM_CBANK = 0x0a,
	KPARAM_INFO = 0x17,
	CBANK_PARAM_SIZE = 0x19,
	KPARAM_INFO_V2 = 0x45, /* nvcc 13 writes these where parameters take more than 4 KiB. */
};

static void add_parameter(struct reader *r, uint8_t code, struct symbols_nv_info *ret)
{
	struct symbols_nv_parameter p = { .is_known = true };
	uint32_t packed;
	uint16_t at;

	reader_skip(r, 4);
	at = reader_u16(r);
	p.offset = reader_u16(r);
	packed = reader_u32(r);
	if (reader_is_bad(r))
		return;
	p.size = (uint16_t)(code == KPARAM_INFO ? packed >> 18 : packed & 0xffff);
	if (at >= ret->n)
		ret->n = (size_t)at + 1;
	/* Of two records for one parameter the first counts. */
	if (at < SYMBOLS_NV_PARAMETERS_MAX && !ret->parameters[at].is_known)
		ret->parameters[at] = p;
}

static void set_bank(struct reader *r, struct symbols_nv_info *ret)
{
	uint16_t base, size;

	reader_skip(r, 4); /* The symbol of the bank's section. */
	base = reader_u16(r);
	size = reader_u16(r);
	if (reader_is_bad(r))
		return;
	ret->has_bank = true;
	ret->base = base;
	ret->size = size;
}

int symbols_nv_info_read(const void *data, size_t size, struct symbols_nv_info *ret)
{
	struct reader r;

	*ret = (struct symbols_nv_info){ 0 };
	reader_init(&r, data, size);
	while (reader_left(&r)) {
		uint8_t format = reader_u8(&r), code = reader_u8(&r);
		uint16_t value = reader_u16(&r);
		struct reader inside;

		if (format != FORMAT_SIZED) {
			if (code == CBANK_PARAM_SIZE && !ret->has_bank && !reader_is_bad(&r))
				ret->size = value;
			continue;
		}
		inside = reader_slice(&r, r.pos, value);
		if (code == KPARAM_INFO || code == KPARAM_INFO_V2)
			add_parameter(&inside, code, ret);
		else if (code == PARAM_CBANK)
			set_bank(&inside, ret);
		reader_skip(&r, value);
	}
	return reader_is_bad(&r) ? -EBADMSG : 0;
}
