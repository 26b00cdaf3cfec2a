/* SPDX-License-Identifier: MIT */
/* Device nodes, marketing names and memory sizes from libdrm. */
#include "topology.h"

#include <amdgpu.h>
#include <amdgpu_drm.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xf86drm.h>

#include "base/cleanup.h"
#include "base/str.h"

#define DRM_DEVICES_MAX	    64
#define DRM_RENDER_MINOR_LO 128u
#define DRM_RENDER_MINOR_HI 0xffffu

static bool is_same_pci(const struct kfdtrap_pci_address *a, const struct kfdtrap_pci_address *b)
{
	return a->domain == b->domain && a->bus == b->bus && a->device == b->device &&
	       a->function == b->function;
}

static void copy_device(const drmDevice *device, struct drm_device_facts *facts)
{
	facts->pci = (struct kfdtrap_pci_address){
		.domain = device->businfo.pci->domain,
		.bus = device->businfo.pci->bus,
		.device = device->businfo.pci->dev,
		.function = device->businfo.pci->func,
	};
	if (device->available_nodes & 1 << DRM_NODE_RENDER)
		str_copy(facts->render_node, sizeof(facts->render_node),
			 device->nodes[DRM_NODE_RENDER]);
	if (device->available_nodes & 1 << DRM_NODE_PRIMARY)
		str_copy(facts->card_node, sizeof(facts->card_node),
			 device->nodes[DRM_NODE_PRIMARY]);
}

static int libdrm_list(struct drm_device_facts *devices, size_t max)
{
	drmDevicePtr found[DRM_DEVICES_MAX];
	int n_found = drmGetDevices2(0, found, DRM_DEVICES_MAX);
	size_t n = 0;

	if (n_found < 0)
		return n_found;
	for (int i = 0; i < n_found && n < max; i++) {
		if (found[i]->bustype != DRM_BUS_PCI)
			continue;
		devices[n] = (struct drm_device_facts){ 0 };
		copy_device(found[i], &devices[n++]);
	}
	drmFreeDevices(found, n_found);
	return (int)n;
}

/*
 * Is this a node of the amdgpu driver?  libdrm_amdgpu would print a complaint of its own about
 * another driver's node.
 */
static bool is_amdgpu(int fd)
{
	drmVersionPtr version = drmGetVersion(fd);
	bool is = version && !strcmp(version->name, "amdgpu");

	drmFreeVersion(version);
	return is;
}

static int libdrm_query(const char *render_node, struct drm_driver_facts *ret_facts)
{
	auto_close int fd = open(render_node, O_RDWR | O_CLOEXEC);
	struct drm_driver_facts facts = { 0 };
	struct drm_amdgpu_memory_info memory;
	amdgpu_device_handle device;
	uint32_t major, minor;
	const char *name;

	if (fd < 0)
		return -errno;
	if (!is_amdgpu(fd) || amdgpu_device_initialize(fd, &major, &minor, &device))
		return -ENODEV;
	name = amdgpu_get_marketing_name(device);
	str_copy(facts.marketing_name, sizeof(facts.marketing_name), name ? name : "");
	memset(&memory, 0, sizeof(memory));
	if (amdgpu_query_info(device, AMDGPU_INFO_MEMORY, sizeof(memory), &memory) == 0) {
		facts.vram_bytes = memory.vram.total_heap_size;
		facts.vram_visible_bytes = memory.cpu_accessible_vram.total_heap_size;
		facts.vram_used_bytes = memory.vram.heap_usage;
		facts.gtt_bytes = memory.gtt.total_heap_size;
	}
	amdgpu_device_deinitialize(device);
	*ret_facts = facts;
	return 0;
}

/*
 * Find the device nodes of a topology node.  The minor in sysfs is right for partitions too, whose
 * render nodes belong to a platform device and so never match by PCI address.
 */
static void find_nodes(struct kfdtrap_node *node, const struct drm_device_facts *devices,
		       size_t n_devices)
{
	for (size_t i = 0; i < n_devices; i++) {
		if (!is_same_pci(&devices[i].pci, &node->pci))
			continue;
		str_copy(node->card_node, sizeof(node->card_node), devices[i].card_node);
		if (node->partition == 0)
			str_copy(node->render_node, sizeof(node->render_node),
				 devices[i].render_node);
		break;
	}
	if (node->drm_render_minor >= DRM_RENDER_MINOR_LO &&
	    node->drm_render_minor <= DRM_RENDER_MINOR_HI)
		snprintf(node->render_node, sizeof(node->render_node), "/dev/dri/renderD%u",
			 node->drm_render_minor);
}

static void add_driver_facts(struct kfdtrap_node *node, const struct drm_source *source)
{
	struct drm_driver_facts facts;

	if (source->query(node->render_node, &facts) < 0)
		return;
	str_copy(node->marketing_name, sizeof(node->marketing_name), facts.marketing_name);
	node->vram_bytes = facts.vram_bytes;
	node->vram_visible_bytes = facts.vram_visible_bytes;
	node->vram_used_bytes = facts.vram_used_bytes;
	node->gtt_bytes = facts.gtt_bytes;
}

int topology_add_drm_from(struct kfdtrap_topology *topology, const struct drm_source *source)
{
	auto_free struct drm_device_facts *devices = calloc(DRM_DEVICES_MAX, sizeof(*devices));
	int n_devices, n_found = 0;

	if (!devices)
		return -ENOMEM;
	n_devices = source->list(devices, DRM_DEVICES_MAX);
	for (size_t i = 0; i < topology->n_nodes; i++) {
		struct kfdtrap_node *node = &topology->nodes[i];

		if (!node->gpu_id)
			continue;
		find_nodes(node, devices, n_devices > 0 ? (size_t)n_devices : 0);
		if (!node->render_node[0])
			continue;
		n_found++;
		add_driver_facts(node, source);
	}
	return n_found;
}

int kfdtrap_topology_add_drm(struct kfdtrap_topology *topology)
{
	static const struct drm_source libdrm = { libdrm_list, libdrm_query };

	return topology_add_drm_from(topology, &libdrm);
}
