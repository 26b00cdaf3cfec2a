/* SPDX-License-Identifier: MIT */
/*
 * Location expressions: the first byte chooses vendor, dialect, wave size and address class, the
 * second the size of the value, the third the bytes of the frame base, which come first.
 */
#include <errno.h>
#include <string.h>

#include "fuzzlib.h"
#include "values/evaluate.h"

static const uint8_t addresses[64];

static int read_register(void *context, uint32_t lane, enum values_file file, uint32_t number,
			 uint32_t *ret)
{
	if (lane > 63 || number > 511)
		__builtin_trap();
	*ret = number * 0x01010101u + lane;
	return number % 16 == 15 ? -EIO : 0;
}

static int read_memory(void *context, uint32_t lane, enum values_space space, uint64_t address,
		       void *ret, size_t size)
{
	if (space >= VALUES_SPACE_COUNT)
		__builtin_trap();
	memset(ret, (int)address, size);
	return address % 64 == 63 ? -EIO : 0;
}

static int find_type(void *context, uint64_t offset, struct values_base_type *ret)
{
	*ret = (struct values_base_type){ .size = (uint32_t)offset % 9, .is_signed = offset & 1 };
	return offset % 7 ? 0 : -ENOENT;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct values_place place;
	static uint8_t bytes[300], known[300];
	struct values_machine m = { .read_register = read_register, .read_memory = read_memory };
	static struct values_frame f;
	struct values_scene s = { .frame = &f, .addresses = addresses, .n_addresses = 8,
				  .find_type = find_type };
	auto_out struct out text = { 0 };
	struct values_bytes b;
	size_t base, wanted;

	if (size < 3)
		return 0;
	f = (struct values_frame){ .machine = &m, .lane = 5, .is_cuda = data[0] & 1,
				   .load_bias = 0x1000, .has_cfa = data[0] & 16, .cfa = 0x1000000 };
	s.is_marked = data[0] & 2;
	m.lanes = data[0] & 4 ? 64 : 32;
	m.stack_counts_waves = data[0] & 8;
	s.address_class = data[0] >> 4;
	wanted = data[1];
	base = data[2] % 32;
	if (base > size - 3)
		base = size - 3;
	s.frame_base = (struct values_operations){ data + 3, base };
	values_evaluate(&s, (struct values_operations){ data + 3 + base, size - 3 - base }, &place);
	if (!place.n || place.first + place.n > VALUES_PIECES_MAX)
		__builtin_trap();
	values_place_read(&place, &f, wanted, bytes, known, &b);
	for (size_t i = 0; i < wanted; i++)
		if (known[i] > 1 || (!known[i] && (bytes[i] || b.state == VALUES_OK)))
			__builtin_trap();
	values_place_print(&place, &f, &text);
	return 0;
}
