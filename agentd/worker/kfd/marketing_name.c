/* SPDX-License-Identifier: MIT */
/*
 * The names of devices by their PCI ids.  libdrm tells them of render nodes only that it can open, which a
 * container may not have, a core file never has, and a user needs a group for; its table is there all the same.
 */
#include <stdlib.h>
#include <string.h>

#include "agentd/worker/kfd/kfd.h"
#include "base/fd.h"

/* Where libdrm looks; amdgpu_asic_id.c of libdrm 2.4.114. */
#define TABLE	  "/usr/share/libdrm/amdgpu.ids"
#define TABLE_MAX (1u << 20)

/* Read a hexadecimal number and the comma behind it.  @return false if there is none. */
static bool take_id(const char **at, uint32_t *ret)
{
	char *end;

	*ret = (uint32_t)strtoul(*at, &end, 16);
	if (end == *at || *end != ',')
		return false;
	*at = end + 1;
	return true;
}

const char *kfd_name_in_table(struct rpc_arena *a, const char *table, uint32_t device_id, uint32_t revision_id)
{
	for (const char *line = table; *line; line += strcspn(line, "\n"), line += *line == '\n') {
		const char *at = line;
		uint32_t device, revision;

		if (!take_id(&at, &device) || device != device_id ||
		    !take_id(&at, &revision) || revision != revision_id)
			continue;
		at += strspn(at, " \t");
		return rpc_arena_printf(a, "%.*s", (int)strcspn(at, "\r\n"), at);
	}
	return NULL;
}

const char *kfd_marketing_name(struct rpc_arena *a, uint32_t device_id, uint32_t revision_id)
{
	/* Read once, since devices are listed while queues stand still. */
	static char *table;
	static bool is_read;
	size_t size;

	if (!is_read)
		fd_read_file(TABLE, TABLE_MAX, &table, &size);
	is_read = true;
	return table ? kfd_name_in_table(a, table, device_id, revision_id) : NULL;
}
