/* SPDX-License-Identifier: MIT */
#include "values/frame.h"

#include <errno.h>
#include <string.h>

#define STACK_POINTER 1u   /* R1 of NVIDIA's ABI. */
#define ZERO	      255u /* RZ. */
#define WORD	      4u
/* Rules lead from callee to callee; a hostile caller could make a long chain of them. */
#define DEPTH_MAX 1024u

const char *values_space_name(enum values_space s)
{
	static const char *const names[VALUES_SPACE_COUNT] = {
		"global", "private", "shared", "constant", "parameter", "generic", "code",
	};

	return (unsigned)s < VALUES_SPACE_COUNT ? names[s] : "?";
}

bool values_stack_counts_waves(uint32_t gfx_target_version)
{
	return gfx_target_version < 90400 ||
	       (gfx_target_version >= 100000 && gfx_target_version < 110000);
}

uint64_t values_frame_lookup(const struct values_frame *f)
{
	/* A return address may lie behind the call's line, block or function. */
	return f->callee ? f->pc - 1 : f->pc;
}

static int read_saved(const struct values_frame *f, int64_t offset, uint32_t *ret)
{
	/* Local addresses have 32 bits. */
	uint64_t address = (uint32_t)(f->cfa + (uint64_t)offset);
	uint8_t b[WORD];
	int r;

	if (!f->has_cfa)
		return -ENXIO;
	r = f->machine->read_memory(f->machine->context, f->lane, VALUES_SPACE_PRIVATE, address, b,
				    sizeof(b));
	*ret = b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
	return r;
}

/* A register R of the caller of frame f's callees, innermost at the end of the walk. */
static int read_through(const struct values_frame *f, uint32_t number, uint32_t *ret)
{
	for (unsigned depth = 0; f->callee && depth < DEPTH_MAX; depth++) {
		f = f->callee;
		if (!f->has_row)
			return -ENXIO;
		if (number == STACK_POINTER) {
			*ret = (uint32_t)f->cfa;
			return f->has_cfa ? 0 : -ENXIO;
		}
		switch (f->row.registers[number].rule) {
		case CALL_FRAME_SAME:
			break;
		case CALL_FRAME_SAVED:
			return read_saved(f, f->row.registers[number].offset, ret);
		case CALL_FRAME_MOVED:
			number = f->row.registers[number].moved_to;
			break;
		case CALL_FRAME_LOST:
			return -ENODATA;
		default:
			return -ENXIO;
		}
	}
	return f->callee ? -ENXIO :
			   f->machine->read_register(f->machine->context, f->lane,
						     VALUES_FILE_REGISTER, number, ret);
}

int values_frame_register(const struct values_frame *f, enum values_file file, uint32_t number,
			  uint32_t *ret)
{
	*ret = 0;
	if (file == VALUES_FILE_REGISTER && number >= ZERO)
		return number == ZERO ? 0 : -ENXIO;
	if (f->callee && file != VALUES_FILE_REGISTER)
		return -ENODATA;
	if (f->callee)
		return read_through(f, number, ret);
	return f->machine->read_register(f->machine->context, f->lane, file, number, ret);
}

static void find_cfa(struct values_frame *f)
{
	uint32_t base;

	f->has_cfa = f->has_row && f->row.has_cfa &&
		     values_frame_register(f, VALUES_FILE_REGISTER, f->row.cfa_register, &base) == 0;
	if (f->has_cfa)
		f->cfa = (uint32_t)(base + (uint64_t)f->row.cfa_offset);
}

void values_frame_unwind(struct values_frame *f, const struct call_frame_table *t)
{
	f->has_row = call_frame_find(t, values_frame_lookup(f), &f->row) == 0;
	find_cfa(f);
}

void values_frame_move(struct values_frame *f, uint32_t lane)
{
	f->lane = lane;
	f->callee = NULL;
	find_cfa(f);
}
