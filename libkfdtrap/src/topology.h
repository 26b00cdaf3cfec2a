/* SPDX-License-Identifier: MIT */
#ifndef KFDTRAP_TOPOLOGY_H
#define KFDTRAP_TOPOLOGY_H

/** @file topology.h  Parts of the topology that tests and the fuzzer reach one by one. */

#include "kfdtrap.h"

/** Text of nodes/N/properties into a node. */
void topology_parse_node(const char *text, size_t size, struct kfdtrap_node *node);
/** Text of nodes/N/mem_banks/M/properties: add the bank to the node's totals. */
void topology_parse_bank(const char *text, size_t size, struct kfdtrap_node *node);
/** PCI addresses and partition numbers, once all nodes are read. */
void topology_resolve_pci(struct kfdtrap_node *nodes, size_t n_nodes);

/** What the inventory of DRM devices says about one PCI device. */
struct drm_device_facts {
	struct kfdtrap_pci_address pci;
	char render_node[32];
	char card_node[32];
};

/** What the driver behind a render node says. */
struct drm_driver_facts {
	char marketing_name[128];
	uint64_t vram_bytes;
	uint64_t vram_visible_bytes;
	uint64_t vram_used_bytes;
	uint64_t gtt_bytes;
};

/** Where the facts come from; tests bring their own. */
struct drm_source {
	/** @return number of devices, at most @p max; -errno. */
	int (*list)(struct drm_device_facts *devices, size_t max);
	/** @return 0 or -errno. */
	int (*query)(const char *render_node, struct drm_driver_facts *ret_facts);
};

int topology_add_drm_from(struct kfdtrap_topology *topology, const struct drm_source *source);

#endif /* KFDTRAP_TOPOLOGY_H */
