/* SPDX-License-Identifier: MIT */
/* Finds code that calls rt_sigreturn in the debuggee. */
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "libcudbgshim/src/inferior/inferior.h"

static const uint8_t *search_restorer(const uint8_t *bytes, size_t size)
{
	for (size_t i = 0; i < inferior_n_restorers; i++) {
		const uint8_t *hit = memmem(bytes, size, inferior_restorers[i].bytes, inferior_restorers[i].size);

		if (hit)
			return hit;
	}
	return NULL;
}

#define PIECE 65536u
#define TEXT_MAX (UINT64_C(64) << 20)

/* Search a mapping; pieces overlap, so that no match is cut. */
static int search_mapping(const struct cudbgshim_memory *memory, const struct cudbgshim_map *map,
			  uint8_t *piece, uint64_t *ret_addr)
{
	for (uint64_t at = map->start; at < map->end && at - map->start < TEXT_MAX;
	     at += PIECE - 16) {
		size_t size = map->end - at < PIECE ? (size_t)(map->end - at) : PIECE;
		const uint8_t *hit;
		int rc = memory->read(memory->ctx, at, piece, size);

		if (rc < 0)
			return rc == -EFAULT ? -ENOENT : rc;
		hit = search_restorer(piece, size);
		if (hit) {
			*ret_addr = at + (uint64_t)(hit - piece);
			return 0;
		}
	}
	return -ENOENT;
}

/* Where it is likely: the kernel's own code for the process, and the C library. */
static bool is_likely(const struct cudbgshim_map *map)
{
	static const char *const stems[] = { "[vdso]", "/libc.so", "/libc-", "/ld-musl", "/libpthread" };

	for (size_t i = 0; i < ARRAY_SIZE(stems); i++)
		if (memmem(map->name, map->name_size, stems[i], strlen(stems[i])))
			return true;
	return false;
}

int inferior_find_restorer(const struct cudbgshim_memory *memory, const char *maps, size_t size,
			   uint64_t *ret_addr)
{
	auto_free uint8_t *piece = malloc(PIECE);

	if (!piece)
		return -ENOMEM;
	/* Then, for a static program, everything else. */
	for (int pass = 0; pass < 2; pass++) {
		struct cudbgshim_maps at = { maps, size, 0 };
		struct cudbgshim_map map;

		while (cudbgshim_maps_next(&at, &map)) {
			int rc;

			if (!(map.flags & CUDBGSHIM_MAP_EXEC) ||
			    !(map.flags & CUDBGSHIM_MAP_READ) || (!map.inode && !is_likely(&map)) ||
			    is_likely(&map) != (pass == 0))
				continue;
			rc = search_mapping(memory, &map, piece, ret_addr);
			if (rc != -ENOENT)
				return rc;
		}
	}
	return -ENOENT;
}
