/* SPDX-License-Identifier: MIT */
/* The text parsers of the topology: node properties, memory banks, numbers, names. */
#include <string.h>

#include "fuzzlib.h"
#include "libkfdtrap/src/sysfs.h"
#include "libkfdtrap/src/topology.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;
	struct kfdtrap_node nodes[2] = { { 0 } };
	char name[16], gfx[16];
	uint64_t value;

	topology_parse_node(text, size, &nodes[0]);
	topology_parse_bank(text, size, &nodes[0]);
	sysfs_parse_line(text, size, name, sizeof(name));
	if (strlen(name) >= sizeof(name))
		__builtin_trap();
	if (sysfs_parse_u64(text, size, &value) == 0)
		nodes[0].gpu_id = (uint32_t)value;
	nodes[1] = nodes[0];
	topology_resolve_pci(nodes, 2);
	if (nodes[0].gpu_id && nodes[1].partition != 1)
		__builtin_trap();
	kfdtrap_gfx_name(nodes[0].gfx_target_version, gfx, sizeof(gfx));
	return 0;
}
