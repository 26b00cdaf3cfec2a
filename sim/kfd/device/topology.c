/* SPDX-License-Identifier: MIT */
/* The tree of files as numbers, and the text of each file. */
#include "topology.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/*
 * An inode number says what it is: type (8 bits) | a (32 bits: node, or PASID of a context) | b (16 bits).
 * The root must be 1, so type 0 stands for the few fixed files of the top directory.
 */
enum type {
	T_ROOT = 0, /* b: 1 is the root, 2 kfd, 3 control. */
	T_TOPOLOGY,
	T_GENERATION,
	T_SYSTEM,
	T_NODES,
	T_NODE,
	T_NODE_FILE, /* b: index into node_files. */
	T_CACHES,
	T_CACHE,	    /* b: index into the GPU's caches. */
	T_CACHE_PROPERTIES, /* Likewise. */
	T_IO_LINKS,
	T_IO_LINK,	      /* b: the node at the other end. */
	T_IO_LINK_PROPERTIES, /* Likewise. */
	T_P2P_LINKS,
	T_P2P_LINK,	       /* b: the node at the other end. */
	T_P2P_LINK_PROPERTIES, /* Likewise. */
	T_BANKS,
	T_BANK,
	T_BANK_PROPERTIES,
	T_PROC,
	T_CONTEXT, /* What a process has; in that of its primary context are its other ones. */
	T_PASID,
	T_VRAM, /* b: position of the GPU. */
	T_SDMA,
	T_QUEUES,
	T_QUEUE,      /* b: queue id. */
	T_QUEUE_FILE, /* b: queue id * 4 + index into queue_files. */
	T_DRI,
	T_RENDER, /* a: position of the GPU. */
};

#define INO(type, a, b)                                                                            \
	((uint64_t)(type) << 48 | (uint64_t)(uint32_t)(a) << 16 | (uint64_t)((b) & 0xffff))
#define INO_TYPE(ino) ((enum type)((ino) >> 48))
#define INO_A(ino)    ((uint32_t)((ino) >> 16))
#define INO_B(ino)    ((uint32_t)((ino) & 0xffff))

#define GPU_CACHES 3u
/* Bits and numbers of the kernel's kfd_crat.h. */
#define CACHE_DATA	  0x1u
#define CACHE_INSTRUCTION 0x2u
#define CACHE_SIMD	  0x8u
#define LINK_PCIE	  2u

static const char *const node_files[] = { "gpu_id", "name", "properties" };
static const char *const queue_files[] = { "gpuid", "size", "type" };

enum tree_kind tree_kind_of(struct sim *s, uint64_t ino)
{
	switch (INO_TYPE(ino)) {
	case T_ROOT:
		switch (INO_B(ino)) {
		case 1: return TREE_ROOT;
		case 2: return TREE_KFD;
		case 3: return TREE_CONTROL;
		default: return TREE_NONE;
		}
	case T_TOPOLOGY:
	case T_NODES:
	case T_NODE:
	case T_CACHES:
	case T_CACHE:
	case T_IO_LINKS:
	case T_IO_LINK:
	case T_P2P_LINKS:
	case T_P2P_LINK:
	case T_BANKS:
	case T_BANK:
	case T_PROC:
	case T_DRI:
		return TREE_DIR;
	case T_RENDER:
		return INO_A(ino) < s->n_gpus ? TREE_RENDER : TREE_NONE;
	case T_CONTEXT:
	case T_QUEUES:
	case T_QUEUE:
		return sim_context_find(s, INO_A(ino)) ? TREE_DIR : TREE_NONE;
	default:
		return TREE_FILE;
	}
}

/* GPUs come and go with the simulator; processes and their queues do so at any time. */
bool tree_is_lasting(uint64_t ino)
{
	enum type type = INO_TYPE(ino);

	return type < T_PROC || type > T_QUEUE_FILE;
}

/* ---- directories ---- */

/* A callback of tree_list() and its data. */
struct listing {
	void (*each)(void *data, const char *name, uint64_t ino);
	void *data;
};

static void entry(const struct listing *l, const char *name, uint64_t ino)
{
	l->each(l->data, name, ino);
}

/* An entry whose name ends with a number. */
static void entry_number(const struct listing *l, const char *prefix, uint32_t n, uint64_t ino)
{
	char name[32];

	snprintf(name, sizeof(name), "%s%u", prefix, n);
	entry(l, name, ino);
}

static void list_node(const struct listing *l, uint32_t node)
{
	for (uint32_t i = 0; i < 3; i++)
		entry(l, node_files[i], INO(T_NODE_FILE, node, i));
	entry(l, "caches", INO(T_CACHES, node, 0));
	entry(l, "io_links", INO(T_IO_LINKS, node, 0));
	entry(l, "p2p_links", INO(T_P2P_LINKS, node, 0));
	entry(l, "mem_banks", INO(T_BANKS, node, 0));
}

/* The GPU of a node; NULL for the host and what is no node. */
static struct sim_gpu *gpu_of(struct sim *s, uint32_t node)
{
	return node && node <= s->n_gpus ? &s->gpus[node - 1] : NULL;
}

/*
 * A GPU is linked to the host, and over the host to each other GPU; the host is linked to all of
 * them.
 */
static uint32_t n_io_links(const struct sim *s, uint32_t node)
{
	return node ? 1 : (uint32_t)s->n_gpus;
}

static void list_links(struct sim *s, const struct listing *l, enum type type, uint32_t node)
{
	uint32_t n = 0;

	if (type == T_IO_LINK) {
		for (uint32_t i = 0; i < n_io_links(s, node); i++)
			entry_number(l, "", i, INO(T_IO_LINK, node, node ? 0 : i + 1));
		return;
	}
	for (uint32_t to = 1; node && to <= s->n_gpus; to++)
		if (to != node)
			entry_number(l, "", n++, INO(T_P2P_LINK, node, to));
}

static void list_processes(struct sim *s, const struct listing *l)
{
	struct sim_process *p;

	TAILQ_FOREACH(p, &s->processes, link)
		if (!p->gone && p->context == SIM_CONTEXT_PRIMARY)
			entry_number(l, "", (uint32_t)p->tgid, INO(T_CONTEXT, p->pasid, 0));
}

/* The other contexts of a process are in the directory of its primary one. */
static void list_contexts(struct sim *s, const struct listing *l, const struct sim_process *primary)
{
	struct sim_process *p;

	TAILQ_FOREACH(p, &s->processes, link)
		if (p->tgid == primary->tgid && !p->gone && p->context != SIM_CONTEXT_PRIMARY)
			entry_number(l, "context_", p->context, INO(T_CONTEXT, p->pasid, 0));
}

static void list_context(struct sim *s, const struct listing *l, uint32_t pasid)
{
	const struct sim_process *p = sim_context_find(s, pasid);

	if (!p)
		return;
	entry(l, "pasid", INO(T_PASID, pasid, 0));
	entry(l, "queues", INO(T_QUEUES, pasid, 0));
	for (uint32_t i = 0; i < s->n_gpus; i++) {
		entry_number(l, "vram_", s->gpus[i].gpu_id, INO(T_VRAM, pasid, i));
		entry_number(l, "sdma_", s->gpus[i].gpu_id, INO(T_SDMA, pasid, i));
	}
	if (p->context == SIM_CONTEXT_PRIMARY)
		list_contexts(s, l, p);
}

static void list_queues(struct sim *s, const struct listing *l, uint32_t pasid)
{
	struct sim_process *p = sim_context_find(s, pasid);
	struct sim_queue *q;

	if (p)
		TAILQ_FOREACH(q, &p->queues, link)
			entry_number(l, "", q->id, INO(T_QUEUE, pasid, q->id));
}

void tree_list(struct sim *s, uint64_t dir,
	       void (*each)(void *data, const char *name, uint64_t ino), void *data)
{
	const struct listing l = { each, data };
	uint32_t a = INO_A(dir), b = INO_B(dir);

	switch (INO_TYPE(dir)) {
	case T_ROOT:
		entry(&l, "kfd", INO(T_ROOT, 0, 2));
		entry(&l, "control", INO(T_ROOT, 0, 3));
		entry(&l, "topology", INO(T_TOPOLOGY, 0, 0));
		entry(&l, "proc", INO(T_PROC, 0, 0));
		entry(&l, "dri", INO(T_DRI, 0, 0));
		break;
	case T_TOPOLOGY:
		entry(&l, "generation_id", INO(T_GENERATION, 0, 0));
		entry(&l, "system_properties", INO(T_SYSTEM, 0, 0));
		entry(&l, "nodes", INO(T_NODES, 0, 0));
		break;
	case T_NODES:
		for (uint32_t i = 0; i <= s->n_gpus; i++)
			entry_number(&l, "", i, INO(T_NODE, i, 0));
		break;
	case T_NODE:
		list_node(&l, a);
		break;
	case T_CACHES:
		for (uint32_t i = 0; gpu_of(s, a) && i < GPU_CACHES; i++)
			entry_number(&l, "", i, INO(T_CACHE, a, i));
		break;
	case T_CACHE:
		entry(&l, "properties", INO(T_CACHE_PROPERTIES, a, b));
		break;
	case T_IO_LINKS:
		list_links(s, &l, T_IO_LINK, a);
		break;
	case T_IO_LINK:
		entry(&l, "properties", INO(T_IO_LINK_PROPERTIES, a, b));
		break;
	case T_P2P_LINKS:
		list_links(s, &l, T_P2P_LINK, a);
		break;
	case T_P2P_LINK:
		entry(&l, "properties", INO(T_P2P_LINK_PROPERTIES, a, b));
		break;
	case T_DRI:
		for (uint32_t i = 0; i < s->n_gpus; i++)
			entry_number(&l, "renderD", s->gpus[i].drm_minor, INO(T_RENDER, i, 0));
		break;
	case T_BANKS:
		entry(&l, "0", INO(T_BANK, a, 0));
		break;
	case T_BANK:
		entry(&l, "properties", INO(T_BANK_PROPERTIES, a, 0));
		break;
	case T_PROC:
		list_processes(s, &l);
		break;
	case T_CONTEXT:
		list_context(s, &l, a);
		break;
	case T_QUEUES:
		list_queues(s, &l, a);
		break;
	case T_QUEUE:
		for (uint32_t i = 0; i < 3; i++)
			entry(&l, queue_files[i], INO(T_QUEUE_FILE, a, b * 4 + i));
		break;
	default:
		break;
	}
}

/* A name that is looked for, and its inode. */
struct search {
	const char *name;
	uint64_t found;
};

static void search_each(void *data, const char *name, uint64_t ino)
{
	struct search *search = data;

	if (!strcmp(name, search->name))
		search->found = ino;
}

struct sim_gpu *tree_gpu(struct sim *s, uint64_t ino)
{
	return &s->gpus[INO_A(ino)];
}

uint64_t tree_lookup(struct sim *s, uint64_t parent, const char *name)
{
	struct search search = { name, 0 };

	tree_list(s, parent, search_each, &search);
	return search.found;
}

/* ---- files ---- */

/* Append a property. */
static void line(struct out *o, const char *name, uint64_t value)
{
	out_fmt(o, "%s %llu\n", name, (unsigned long long)value);
}

/* The properties of node 0, which is the host. */
static void render_cpu(const struct sim *s, struct out *o)
{
	line(o, "cpu_cores_count", (uint64_t)sysconf(_SC_NPROCESSORS_ONLN));
	line(o, "simd_count", 0);
	line(o, "mem_banks_count", 1);
	line(o, "caches_count", 0);
	line(o, "io_links_count", n_io_links(s, 0));
	line(o, "p2p_links_count", 0);
	line(o, "cpu_core_id_base", 0);
	line(o, "gfx_target_version", 0);
	line(o, "vendor_id", 0);
	line(o, "device_id", 0);
	line(o, "location_id", 0);
	line(o, "domain", 0);
	line(o, "drm_render_minor", 0);
	line(o, "num_xcc", 0);
}

static void render_geometry(const struct sim *s, const struct gpu_profile *g, struct out *o)
{
	line(o, "cpu_cores_count", 0);
	line(o, "simd_count", g->simd_count);
	line(o, "mem_banks_count", 1);
	line(o, "caches_count", GPU_CACHES);
	line(o, "io_links_count", 1);
	line(o, "p2p_links_count", s->n_gpus - 1);
	line(o, "max_waves_per_simd", g->max_waves_per_simd);
	line(o, "lds_size_in_kb", g->lds_kb);
	line(o, "gds_size_in_kb", 0);
	line(o, "num_gws", 64);
	line(o, "wave_front_size", g->wave_size);
	/* The number is multiplied here, and given per XCC in the device snapshot. */
	line(o, "array_count", (uint64_t)g->array_count * g->num_xcc);
	line(o, "simd_arrays_per_engine", g->simd_arrays_per_engine);
	line(o, "cu_per_simd_array", g->cu_per_simd_array);
	line(o, "simd_per_cu", g->simd_per_cu);
	line(o, "max_slots_scratch_cu", 32);
	line(o, "gfx_target_version", g->gfx_target_version);
}

static void render_gpu(const struct sim *s, struct sim_gpu *gpu, struct out *o)
{
	const struct gpu_profile *g = gpu->profile;

	render_geometry(s, g, o);
	line(o, "vendor_id", 0x1002);
	line(o, "device_id", g->device_id);
	line(o, "location_id", gpu->location_id);
	line(o, "domain", 0);
	line(o, "drm_render_minor", gpu->drm_minor);
	line(o, "hive_id", 0);
	line(o, "num_sdma_engines", 2);
	line(o, "num_sdma_xgmi_engines", 0);
	line(o, "num_sdma_queues_per_engine", 8);
	line(o, "num_cp_queues", 24);
	line(o, "max_engine_clk_fcompute", 2100);
	line(o, "local_mem_size", 0);
	line(o, "fw_version", g->fw_version);
	line(o, "sdma_fw_version", 8);
	/* Reading this file is what makes the watch bits appear everywhere. */
	gpu->properties_read = true;
	line(o, "capability", gpu_profile_capability(g) | GPU_CAPABILITY_WATCH);
	if (s->kernel->contexts)
		line(o, "capability2", 0);
	line(o, "debug_prop", g->debug_prop);
	if (s->kernel->minor >= 17) {
		line(o, "cwsr_size", gpu_profile_cwsr_size(g));
		line(o, "ctl_stack_size", gpu_profile_ctl_stack_size(g));
	}
	line(o, "unique_id", UINT64_C(0x5349000000000000) | gpu->gpu_id);
	line(o, "num_xcc", g->num_xcc);
}

static void render_node_file(struct sim *s, uint32_t node, uint32_t file, struct out *o)
{
	struct sim_gpu *gpu = gpu_of(s, node);

	switch (file) {
	case 0:
		out_fmt(o, "%u\n", gpu ? gpu->gpu_id : 0);
		break;
	case 1:
		out_fmt(o, "%s\n", gpu ? gpu->profile->marketing_name : "");
		break;
	default:
		if (gpu)
			render_gpu(s, gpu, o);
		else
			render_cpu(s, o);
	}
}

/* The caches of a GPU: of a compute unit, of all of them, behind them all. */
static const struct {
	uint32_t level, kib, type;
} gpu_caches[GPU_CACHES] = {
	{ 1, 16, CACHE_DATA | CACHE_SIMD },
	{ 1, 64, CACHE_INSTRUCTION | CACHE_SIMD },
	{ 2, 4096, CACHE_DATA | CACHE_SIMD },
};

static void render_cache(struct out *o, uint32_t cache)
{
	if (cache >= GPU_CACHES)
		return;
	line(o, "processor_id_low", 0);
	line(o, "level", gpu_caches[cache].level);
	line(o, "size", gpu_caches[cache].kib);
	line(o, "cache_line_size", 64);
	line(o, "cache_lines_per_tag", 1);
	line(o, "association", 16);
	line(o, "latency", 0);
	line(o, "type", gpu_caches[cache].type);
	out_str(o, "sibling_map 1,1,1,1\n");
}

static void render_link(struct out *o, uint32_t from, uint32_t to)
{
	line(o, "type", LINK_PCIE);
	line(o, "version_major", 0);
	line(o, "version_minor", 0);
	line(o, "node_from", from);
	line(o, "node_to", to);
	/* The weight of one hop is 20. */
	line(o, "weight", from && to ? 40 : 20);
	line(o, "min_latency", 0);
	line(o, "max_latency", 0);
	line(o, "min_bandwidth", 0);
	line(o, "max_bandwidth", 32000);
	line(o, "recommended_transfer_size", 0);
	line(o, "recommended_sdma_engine_id_mask", 0);
	line(o, "flags", 1);
}

static void render_bank(const struct sim *s, uint32_t node, struct out *o)
{
	bool gpu = node && node <= s->n_gpus;

	line(o, "heap_type", gpu ? 1 : 0);
	line(o, "size_in_bytes", gpu ? s->gpus[node - 1].profile->vram_size
				     : (uint64_t)sysconf(_SC_PHYS_PAGES) *
					       (uint64_t)sysconf(_SC_PAGESIZE));
	line(o, "flags", 0);
	line(o, "width", gpu ? 4096 : 64);
	line(o, "mem_clk_max", 1600);
}

/* These files have no newline behind the value; type is the driver's internal number. */
static void render_queue_file(struct sim *s, uint32_t pasid, uint32_t b, struct out *o)
{
	struct sim_process *p = sim_context_find(s, pasid);
	struct sim_queue *q = p ? sim_queue_find(p, b / 4) : NULL;

	if (!q)
		return;
	switch (b % 4) {
	case 0:
		out_fmt(o, "%u", q->device->gpu->gpu_id);
		break;
	case 1:
		out_fmt(o, "%u", q->args.ring_size);
		break;
	default:
		out_fmt(o, "%u", sim_queue_is_compute(q)			  ? 0
				 : q->type == KFDABI_QUEUE_TYPE_SDMA ? 1
								     : 4);
	}
}

void tree_render(struct sim *s, uint64_t ino, struct out *o)
{
	uint32_t a = INO_A(ino), b = INO_B(ino);

	switch (INO_TYPE(ino)) {
	case T_GENERATION:
		out_str(o, "1\n");
		break;
	case T_SYSTEM:
		line(o, "platform_oem", 0);
		line(o, "platform_id", 0);
		line(o, "platform_rev", 0);
		break;
	case T_NODE_FILE:
		render_node_file(s, a, b, o);
		break;
	case T_CACHE_PROPERTIES:
		render_cache(o, b);
		break;
	case T_IO_LINK_PROPERTIES:
	case T_P2P_LINK_PROPERTIES:
		render_link(o, a, b);
		break;
	case T_BANK_PROPERTIES:
		render_bank(s, a, o);
		break;
	case T_PASID:
		if (sim_context_find(s, a))
			out_fmt(o, "%u\n", a);
		break;
	case T_VRAM:
	case T_SDMA:
		out_str(o, "0\n");
		break;
	case T_QUEUE_FILE:
		render_queue_file(s, a, b, o);
		break;
	default:
		break;
	}
}
