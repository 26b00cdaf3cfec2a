/* SPDX-License-Identifier: MIT */
#include "symbols/aql.h"

#include <errno.h>

#include "base/reader.h"

#define FORMAT_BARRIER_VALUE 2u

static void decode_dispatch(struct reader *r, struct symbols_aql_packet *p)
{
	p->n_dimensions = reader_u16(r) & 3;
	for (size_t i = 0; i < 3; i++)
		p->workgroup_size[i] = reader_u16(r);
	reader_skip(r, 2);
	for (size_t i = 0; i < 3; i++)
		p->grid_size[i] = reader_u32(r);
	p->private_segment_bytes = reader_u32(r);
	p->group_segment_bytes = reader_u32(r);
	p->kernel_object = reader_u64(r);
	p->kernarg_address = reader_u64(r);
}

static void decode_barrier(struct reader *r, struct symbols_aql_packet *p)
{
	reader_seek(r, 8);
	for (size_t i = 0; i < SYMBOLS_AQL_DEPENDENCIES; i++)
		p->dependencies[i] = reader_u64(r);
}

static void decode_barrier_value(struct reader *r, struct symbols_aql_packet *p)
{
	uint32_t condition;

	reader_seek(r, 8);
	p->dependencies[0] = reader_u64(r);
	p->value = (int64_t)reader_u64(r);
	p->mask = (int64_t)reader_u64(r);
	condition = reader_u32(r);
	p->condition = condition < SYMBOLS_AQL_CONDITION_COUNT ? (enum symbols_aql_condition)condition :
								 SYMBOLS_AQL_CONDITION_COUNT;
}

static bool has_completion_signal(enum symbols_aql_type type)
{
	return type >= SYMBOLS_AQL_KERNEL_DISPATCH && type <= SYMBOLS_AQL_BARRIER_VALUE;
}

int symbols_aql_decode(const void *bytes, size_t size, struct symbols_aql_packet *ret)
{
	struct symbols_aql_packet p = { 0 };
	struct reader r;
	uint16_t header;

	if (size < SYMBOLS_AQL_PACKET_SIZE)
		return -EINVAL;
	reader_init(&r, bytes, SYMBOLS_AQL_PACKET_SIZE);
	header = reader_u16(&r);
	p.type = (header & 0xff) <= SYMBOLS_AQL_BARRIER_OR ? (enum symbols_aql_type)(header & 0xff) :
							     SYMBOLS_AQL_TYPE_COUNT;
	/* The byte behind the header is the format of AMD's own packets. */
	if (p.type == SYMBOLS_AQL_VENDOR_SPECIFIC && (reader_u16(&r) & 0xff) == FORMAT_BARRIER_VALUE)
		p.type = SYMBOLS_AQL_BARRIER_VALUE;
	p.barrier = header >> 8 & 1;
	p.acquire = (enum symbols_aql_scope)(header >> 9 & 3);
	p.release = (enum symbols_aql_scope)(header >> 11 & 3);
	if (p.type == SYMBOLS_AQL_KERNEL_DISPATCH)
		decode_dispatch(&r, &p);
	else if (p.type == SYMBOLS_AQL_BARRIER_AND || p.type == SYMBOLS_AQL_BARRIER_OR)
		decode_barrier(&r, &p);
	else if (p.type == SYMBOLS_AQL_BARRIER_VALUE)
		decode_barrier_value(&r, &p);
	reader_seek(&r, 56);
	if (has_completion_signal(p.type))
		p.completion_signal = reader_u64(&r);
	*ret = p;
	return 0;
}

int symbols_kernel_descriptor_decode(const void *bytes, size_t size, uint64_t address,
				     struct symbols_kernel_descriptor *ret)
{
	struct symbols_kernel_descriptor d = { 0 };
	struct reader r;

	if (size < SYMBOLS_KERNEL_DESCRIPTOR_SIZE)
		return -EINVAL;
	reader_init(&r, bytes, SYMBOLS_KERNEL_DESCRIPTOR_SIZE);
	d.group_segment_bytes = reader_u32(&r);
	d.private_segment_bytes = reader_u32(&r);
	d.kernarg_bytes = reader_u32(&r);
	reader_seek(&r, 16);
	/* The offset is signed in the file; unsigned addition wraps to the same address. */
	d.entry = address + reader_u64(&r);
	reader_seek(&r, 44);
	d.pgm_rsrc3 = reader_u32(&r);
	d.pgm_rsrc1 = reader_u32(&r);
	d.pgm_rsrc2 = reader_u32(&r);
	d.properties = reader_u16(&r);
	*ret = d;
	return 0;
}
