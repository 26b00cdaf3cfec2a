/* SPDX-License-Identifier: MIT */
/* Topology of the machine from sysfs. */
#include "topology.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "sysfs.h"

#define TOPOLOGY_TRIES 5

#define NODE(member) SYSFS_FIELD(kfdtrap_node, member)

static const struct sysfs_field node_fields[] = {
	NODE(capability2), /* has_capability2 looks at bit 0, so this field comes first. */
	NODE(cpu_cores_count),
	NODE(simd_count),
	NODE(max_waves_per_simd),
	NODE(simd_per_cu),
	NODE(cu_per_simd_array),
	NODE(simd_arrays_per_engine),
	NODE(array_count),
	NODE(num_xcc),
	NODE(wave_front_size),
	NODE(lds_size_in_kb),
	NODE(max_slots_scratch_cu),
	NODE(num_cp_queues),
	NODE(num_sdma_engines),
	NODE(num_sdma_xgmi_engines),
	NODE(num_gws),
	NODE(cwsr_size),
	NODE(ctl_stack_size),
	NODE(gfx_target_version),
	NODE(vendor_id),
	NODE(device_id),
	NODE(location_id),
	NODE(drm_render_minor),
	NODE(fw_version),
	NODE(sdma_fw_version),
	NODE(capability),
	NODE(debug_prop),
	NODE(unique_id),
	NODE(hive_id),
	{ "domain", offsetof(struct kfdtrap_node, pci.domain), sizeof(uint32_t) },
};
_Static_assert(ARRAY_SIZE(node_fields) <= 64, "one bit each");

void topology_parse_node(const char *text, size_t size, struct kfdtrap_node *node)
{
	uint64_t seen = sysfs_parse_fields(text, size, node_fields, ARRAY_SIZE(node_fields), node);

	node->has_capability2 = seen & 1;
}

struct bank {
	uint64_t size_in_bytes;
	uint32_t heap_type;
};

static const struct sysfs_field bank_fields[] = {
	SYSFS_FIELD(bank, heap_type),
	SYSFS_FIELD(bank, size_in_bytes),
};

void topology_parse_bank(const char *text, size_t size, struct kfdtrap_node *node)
{
	struct bank bank = { 0 };

	/* A bank without a type must not count as system memory, whose number is 0. */
	if (sysfs_parse_fields(text, size, bank_fields, ARRAY_SIZE(bank_fields), &bank) != 3)
		return;
	switch (bank.heap_type) {
	case KFDTRAP_HEAP_SYSTEM:
		node->system_bytes += bank.size_in_bytes;
		break;
	case KFDTRAP_HEAP_FB_PUBLIC:
		node->local_public_bytes += bank.size_in_bytes;
		node->local_bytes += bank.size_in_bytes;
		break;
	case KFDTRAP_HEAP_FB_PRIVATE:
		node->local_bytes += bank.size_in_bytes;
		break;
	default:
		break;
	}
}

static bool shares_pci_slot(const struct kfdtrap_node *a, const struct kfdtrap_node *b)
{
	return a->gpu_id && b->gpu_id && a->pci.domain == b->pci.domain &&
	       a->pci.bus == b->pci.bus && a->pci.device == b->pci.device;
}

/*
 * location_id is bus << 8 | device << 3 | function.  With several partitions the kernel ORs the
 * partition's number in: into the function in earlier releases, above bit 27 later.  Nodes that
 * share a slot are therefore partitions, and the smallest function is the device's own.
 */
void topology_resolve_pci(struct kfdtrap_node *nodes, size_t n_nodes)
{
	for (size_t i = 0; i < n_nodes; i++) {
		struct kfdtrap_pci_address *pci = &nodes[i].pci;

		if (!nodes[i].gpu_id)
			continue;
		pci->bus = (uint8_t)(nodes[i].location_id >> 8);
		pci->device = (uint8_t)(nodes[i].location_id >> 3 & 0x1f);
		pci->function = (uint8_t)(nodes[i].location_id & 0x7);
	}
	for (size_t i = 0; i < n_nodes; i++) {
		nodes[i].partition = 0;
		for (size_t j = 0; j < n_nodes; j++) {
			if (!shares_pci_slot(&nodes[i], &nodes[j]))
				continue;
			if (j < i)
				nodes[i].partition++;
			if (nodes[j].pci.function < nodes[i].pci.function)
				nodes[i].pci.function = nodes[j].pci.function;
		}
	}
}

static int read_node_files(int node_fd, struct kfdtrap_node *node)
{
	auto_free char *name = NULL;
	auto_free char *properties = NULL;
	uint64_t gpu_id;
	size_t size;
	int r;

	r = sysfs_read_u64(node_fd, "gpu_id", &gpu_id);
	if (r < 0)
		return r;
	if (gpu_id > UINT32_MAX)
		return -ERANGE;
	node->gpu_id = (uint32_t)gpu_id;
	r = sysfs_read(node_fd, "properties", &properties, &size);
	if (r < 0)
		return r;
	topology_parse_node(properties, size, node);
	r = sysfs_read(node_fd, "name", &name, &size);
	if (r < 0)
		return r;
	sysfs_parse_line(name, size, node->name, sizeof(node->name));
	return 0;
}

static int read_banks(int node_fd, struct kfdtrap_node *node)
{
	auto_free uint32_t *banks = NULL;
	size_t n_banks;
	int r;

	r = sysfs_list(node_fd, "mem_banks", "", &banks, &n_banks);
	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return r;
	for (size_t i = 0; i < n_banks; i++) {
		auto_free char *text = NULL;
		char path[64];
		size_t size;

		snprintf(path, sizeof(path), "mem_banks/%u/properties", banks[i]);
		r = sysfs_read(node_fd, path, &text, &size);
		if (r < 0)
			return r;
		topology_parse_bank(text, size, node);
	}
	return 0;
}

/* Read a node.  A node that cannot be read gets the error, and does not hide the others. */
static int read_node(int root_fd, uint32_t node_id, struct kfdtrap_node *node)
{
	auto_close int node_fd = -1;
	char path[64];
	int r;

	node->node_id = node_id;
	snprintf(path, sizeof(path), "topology/nodes/%u", node_id);
	r = node_fd = sysfs_open(root_fd, path);
	if (r >= 0)
		r = read_node_files(node_fd, node);
	if (r >= 0)
		r = read_banks(node_fd, node);
	if (r == -ENOMEM)
		return r;
	if (r < 0)
		*node = (struct kfdtrap_node){ .node_id = node_id, .error = r };
	return 0;
}

static int read_generation(int root_fd, uint32_t *ret_generation)
{
	uint64_t value;
	int r = sysfs_read_u64(root_fd, "topology/generation_id", &value);

	if (r < 0)
		return r == -ERANGE ? -EINVAL : r;
	*ret_generation = (uint32_t)value;
	return 0;
}

static const struct sysfs_field system_fields[] = {
	SYSFS_FIELD(kfdtrap_topology, platform_oem),
	SYSFS_FIELD(kfdtrap_topology, platform_id),
	SYSFS_FIELD(kfdtrap_topology, platform_rev),
};

static int read_once(int root_fd, struct kfdtrap_topology *topology)
{
	auto_free uint32_t *ids = NULL;
	auto_free char *text = NULL;
	size_t n_ids, size;
	int r;

	r = sysfs_read(root_fd, "topology/system_properties", &text, &size);
	if (r < 0 && r != -ENOENT)
		return r;
	if (r == 0)
		sysfs_parse_fields(text, size, system_fields, ARRAY_SIZE(system_fields), topology);
	r = sysfs_list(root_fd, "topology/nodes", "", &ids, &n_ids);
	if (r < 0)
		return r;
	topology->nodes = calloc(n_ids ? n_ids : 1, sizeof(*topology->nodes));
	if (!topology->nodes)
		return -ENOMEM;
	topology->n_nodes = n_ids;
	for (size_t i = 0; i < n_ids; i++) {
		r = read_node(root_fd, ids[i], &topology->nodes[i]);
		if (r < 0)
			return r;
	}
	topology_resolve_pci(topology->nodes, n_ids);
	return 0;
}

static void destroyp(struct kfdtrap_topology **topology)
{
	kfdtrap_topology_destroy(*topology);
}

/*
 * Read the topology once.
 * @return 1 when the copy is consistent, 0 when the topology changed meanwhile, -errno.
 */
static int read_consistent(int root_fd, struct kfdtrap_topology **ret_topology)
{
	__attribute__((cleanup(destroyp))) struct kfdtrap_topology *topology =
		calloc(1, sizeof(*topology));
	uint32_t after;
	int r, read_error;

	if (!topology)
		return -ENOMEM;
	r = read_generation(root_fd, &topology->generation);
	if (r < 0)
		return r;
	/*
	 * An error while the topology changes means nothing, so the second generation is read
	 * first.
	 */
	read_error = read_once(root_fd, topology);
	r = read_generation(root_fd, &after);
	if (r < 0)
		return r;
	if (after != topology->generation)
		return 0;
	if (read_error < 0)
		return read_error;
	*ret_topology = TAKE_PTR(topology);
	return 1;
}

static int public_error(int r)
{
	switch (r) {
	case -ENOENT:
	case -EAGAIN:
	case -EACCES:
	case -EPERM:
	case -EINVAL:
	case -ENOMEM:
		return r;
	case -ENOTDIR:
		return -ENOENT;
	default:
		return -EIO;
	}
}

int kfdtrap_topology_create(const char *sysfs_root, struct kfdtrap_topology **ret_topology)
{
	auto_close int root_fd = sysfs_open(AT_FDCWD, sysfs_root ? sysfs_root : KFDTRAP_SYSFS_ROOT);

	if (root_fd < 0)
		return public_error(root_fd);
	for (unsigned int i = 0; i < TOPOLOGY_TRIES; i++) {
		int r = read_consistent(root_fd, ret_topology);

		if (r < 0)
			return public_error(r);
		if (r > 0)
			return 0;
	}
	return -EAGAIN;
}

void kfdtrap_topology_destroy(struct kfdtrap_topology *topology)
{
	if (!topology)
		return;
	free(topology->nodes);
	free(topology);
}

const struct kfdtrap_node *kfdtrap_topology_find_gpu(const struct kfdtrap_topology *topology,
						     uint32_t gpu_id)
{
	for (size_t i = 0; gpu_id && i < topology->n_nodes; i++)
		if (topology->nodes[i].gpu_id == gpu_id)
			return &topology->nodes[i];
	return NULL;
}
