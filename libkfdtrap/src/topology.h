/* SPDX-License-Identifier: MIT */
#ifndef KFDTRAP_TOPOLOGY_H
#define KFDTRAP_TOPOLOGY_H

/**
 * @file topology.h
 * Parts of the topology that tests and the fuzzer reach one by one.
 */

#include "kfdtrap.h"

/** Parse the text of nodes/N/properties into a node. */
void topology_parse_node(const char *text, size_t size, struct kfdtrap_node *node);
/** Parse the text of nodes/N/mem_banks/M/properties and add the bank to the node's totals. */
void topology_parse_bank(const char *text, size_t size, struct kfdtrap_node *node);
/** Set PCI addresses and partition numbers, once all nodes are read. */
void topology_resolve_pci(struct kfdtrap_node *nodes, size_t n_nodes);

/** The facts about one PCI device in the inventory of DRM devices. */
struct drm_device_facts {
	struct kfdtrap_pci_address pci;
	char render_node[32];
	char card_node[32];
};

/** The facts that the driver behind a render node tells. */
struct drm_driver_facts {
	char marketing_name[128];
	uint64_t vram_bytes;
	uint64_t vram_visible_bytes;
	uint64_t vram_used_bytes;
	uint64_t gtt_bytes;
};

/** The source of the facts; tests bring their own. */
struct drm_source {
	/**
	 * List the devices.
	 * @return number of devices, at most @p max; -errno.
	 */
	int (*list)(struct drm_device_facts *devices, size_t max);
	/**
	 * Ask the driver behind a render node.
	 * @return 0 or -errno.
	 */
	int (*query)(const char *render_node, struct drm_driver_facts *ret_facts);
};

/** As kfdtrap_topology_add_drm(), with the given source. */
int topology_add_drm_from(struct kfdtrap_topology *topology, const struct drm_source *source);

#endif /* KFDTRAP_TOPOLOGY_H */
