/* SPDX-License-Identifier: MIT */
#include "aql.h"

#include <errno.h>
#include <string.h>

/* Types in the lowest byte of a packet's header. */
enum type {
	TYPE_VENDOR = 0,
	TYPE_INVALID = AQL_HEADER_INVALID,
	TYPE_DISPATCH = 2,
	TYPE_BARRIER_AND = 3,
	TYPE_BARRIER_OR = 5,
};
/* AMD's formats of a vendor packet, behind its header (ROCr's hsa_ext_amd.h). */
enum format { FORMAT_NONE = 0, FORMAT_PM4 = 1, FORMAT_BARRIER_VALUE = 2 };

static uint16_t u16_at(const uint8_t *p, size_t at)
{
	uint16_t v;

	memcpy(&v, p + at, sizeof(v));
	return v;
}

static uint32_t u32_at(const uint8_t *p, size_t at)
{
	uint32_t v;

	memcpy(&v, p + at, sizeof(v));
	return v;
}

static uint64_t u64_at(const uint8_t *p, size_t at)
{
	uint64_t v;

	memcpy(&v, p + at, sizeof(v));
	return v;
}

static void parse_dispatch(const uint8_t *p, struct aql_packet *ret)
{
	ret->kind = AQL_DISPATCH;
	ret->dimensions = u16_at(p, 2) & 3;
	for (size_t i = 0; i < 3; i++) {
		ret->workgroup[i] = u16_at(p, 4 + i * 2);
		ret->grid[i] = u32_at(p, 12 + i * 4);
	}
	ret->private_size = u32_at(p, 24);
	ret->group_size = u32_at(p, 28);
	ret->kernel_object = u64_at(p, 32);
	ret->kernarg = u64_at(p, 40);
}

static void parse_barrier(const uint8_t *p, enum aql_kind kind, struct aql_packet *ret)
{
	ret->kind = kind;
	for (size_t i = 0; i < AQL_SIGNALS; i++)
		ret->signals[i] = u64_at(p, 8 + i * 8);
}

static int parse_vendor(const uint8_t *p, struct aql_packet *ret)
{
	switch (p[2]) {
	case FORMAT_NONE:
	case FORMAT_PM4:
		ret->kind = AQL_COMMANDS;
		return 0;
	case FORMAT_BARRIER_VALUE:
		ret->kind = AQL_BARRIER_VALUE;
		ret->signals[0] = u64_at(p, 8);
		ret->value = (int64_t)u64_at(p, 16);
		ret->mask = (int64_t)u64_at(p, 24);
		ret->condition = u32_at(p, 32) & 3;
		return 0;
	default:
		return -EPROTONOSUPPORT;
	}
}

int aql_packet_parse(const void *bytes, size_t size, struct aql_packet *ret)
{
	struct aql_packet packet = { .kind = AQL_INVALID };
	const uint8_t *p = bytes;
	int r = 0;

	if (size < AQL_PACKET_SIZE)
		return -EINVAL;
	packet.completion = u64_at(p, 56);
	switch (p[0]) {
	case TYPE_VENDOR:
		r = parse_vendor(p, &packet);
		break;
	case TYPE_INVALID:
		break;
	case TYPE_DISPATCH:
		parse_dispatch(p, &packet);
		break;
	case TYPE_BARRIER_AND:
		parse_barrier(p, AQL_BARRIER_AND, &packet);
		break;
	case TYPE_BARRIER_OR:
		parse_barrier(p, AQL_BARRIER_OR, &packet);
		break;
	default:
		r = -ENOTSUP;
	}
	if (!r)
		*ret = packet;
	return r;
}

static bool compares(const struct aql_packet *p, int64_t value)
{
	value &= p->mask;
	switch (p->condition) {
	case AQL_EQ: return value == p->value;
	case AQL_NE: return value != p->value;
	case AQL_LT: return value < p->value;
	default: return value >= p->value;
	}
}

bool aql_barrier_is_open(const struct aql_packet *p, const int64_t values[AQL_SIGNALS])
{
	bool any = false, all = true;
	size_t n = 0;

	if (p->kind == AQL_BARRIER_VALUE)
		return !p->signals[0] || compares(p, values[0]);
	for (size_t i = 0; i < AQL_SIGNALS; i++) {
		if (!p->signals[i])
			continue;
		n++;
		any |= !values[i];
		all &= !values[i];
	}
	return !n || (p->kind == AQL_BARRIER_OR ? any : all);
}

int aql_kernel_parse(const void *bytes, size_t size, struct aql_kernel *ret)
{
	const uint8_t *p = bytes;

	if (size < AQL_KERNEL_SIZE)
		return -EINVAL;
	*ret = (struct aql_kernel){
		.kernarg_size = u32_at(p, 8),
		.entry = (int64_t)u64_at(p, 16),
		.rsrc3 = u32_at(p, 44),
		.rsrc1 = u32_at(p, 48),
		.rsrc2 = u32_at(p, 52),
		.wave32 = u16_at(p, 56) >> 10 & 1,
	};
	return 0;
}
