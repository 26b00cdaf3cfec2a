/* SPDX-License-Identifier: MIT */
/*
 * Tables of a cubin's and a code object's debug information.  The first byte chooses: the map of
 * registers, call frames, lists of locations of either kind.
 */
#include <string.h>

#include "fuzzlib.h"
#include "values/call_frame.h"
#include "values/location_list.h"
#include "values/register_map.h"

static volatile uint8_t seen;

static void try_registers(const uint8_t *data, size_t size)
{
	static const char *const names[] = { "spin", "_Z6calleePii", "planted", "f(int)", "" };
	static const uint64_t numbers[] = { 0x2572, 0x257231, 0x25726431, 0x25727331, 0x256631 };
	struct register_map_part parts[REGISTER_MAP_PARTS_MAX];
	struct register_map *m;
	unsigned n_parts;
	size_t n;

	if (register_map_create(data, size, &m) < 0)
		return;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		for (size_t k = 0; k < sizeof(numbers) / sizeof(numbers[0]); k++)
			for (uint64_t at = 0; at < 0x400; at += 0x50)
				if (register_map_find(m, names[i], numbers[k], at, parts, &n, &n_parts) == 0 &&
				    (!n || n > REGISTER_MAP_PARTS_MAX || !n_parts || n_parts > 2))
					__builtin_trap();
	register_map_destroy(m);
}

static void try_frames(const uint8_t *data, size_t size)
{
	static struct call_frame_row row;
	struct call_frame_table *t;

	if (call_frame_create(data, size, &t) < 0)
		return;
	for (uint64_t at = 0; at < 0x1000; at += 0x90)
		if (call_frame_find(t, at, &row) == 0)
			for (size_t i = 0; i < CALL_FRAME_REGISTERS; i++)
				if (row.registers[i].rule > CALL_FRAME_UNKNOWN)
					__builtin_trap();
	call_frame_destroy(t);
}

static void try_list(const uint8_t *data, size_t size, bool is_old)
{
	struct location_list l = { .section = data, .size = size, .is_old = is_old, .base = 0x100,
				   .addresses = data, .n_addresses = size / 8 };
	struct values_operations x;

	for (uint64_t at = 0x100; at < 0x900; at += 0x44) {
		if (location_list_find(&l, at, &x) < 0)
			continue;
		if (x.data < data || x.size > size || x.data + x.size > data + size)
			__builtin_trap();
		for (size_t i = 0; i < x.size; i++)
			seen ^= x.data[i];
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!size)
		return 0;
	switch (data[0] % 4) {
	case 0:
		try_registers(data + 1, size - 1);
		break;
	case 1:
		try_frames(data + 1, size - 1);
		break;
	default:
		try_list(data + 1, size - 1, data[0] & 1);
	}
	return 0;
}
