/* SPDX-License-Identifier: MIT */
/*
 * Plants a CUDA core for test_cuda_gdb.py, which knows what is planted, then reads it back and
 * says what our reader sees.
 *
 * usage: cuda_core OUT LAYOUT FULL RELOCATED IMAGE KERNEL CALLEE GLOBAL
 *   LAYOUT  enum cudacore_layout
 *   FULL    so many SMs besides, with a lane in every slot
 *   the last three: addresses
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/str.h"
#include "corefile/cuda/read.h"
#include "corefile/cuda/write.h"
#include "corefile/file.h"

#define REGISTERS 40u
#define BANK	  UINT64_C(0x7f2000000000)

struct plan {
	struct cudacore core;
	uint64_t kernel, callee, global, full;
	uint32_t registers[8][32][REGISTERS];
	uint32_t shared[3][0x500 / 4], local[32][64], uniform[8][63], words[8], bank[0x220 / 4];
};

__attribute__((noreturn)) static void die(const char *what, const char *why)
{
	fprintf(stderr, "cuda_core: %s: %s\n", what, why);
	exit(1);
}

static void *add(struct plan *p, enum cudacore_table table, uint32_t parent)
{
	void *row = cudacore_add(&p->core, table, parent);

	if (!row)
		die("plan", "out of memory");
	return row;
}

static uint32_t last(const struct plan *p, enum cudacore_table table)
{
	return p->core.n[table] - 1;
}

static void plan_device(struct plan *p, uint32_t id, const char *name, uint32_t sms)
{
	struct cudacore_device *d = add(p, CUDACORE_DEVICES, 0);

	*d = (struct cudacore_device){
		.name = name, .type = "GH100", .sm_type = "sm_90", .id = id,
		.pci_bus = 0x1b + id, .pci_device = id, .sm_count = sms, .warps_per_sm = 64,
		.lanes_per_warp = 32, .registers_per_lane = 255, .predicates_per_lane = 7,
		.sm_major = 9, .instruction_bytes = 16, .uniform_registers = 63,
		.uniform_predicates = 7,
	};
}

/* All the same, with nothing in their registers. */
static void plan_full_sm(struct plan *p, uint32_t sm)
{
	struct cudacore_block *b = add(p, CUDACORE_BLOCKS, sm);

	b->grid_id = 7;
	b->index[0] = 3;
	for (uint32_t i = 0; i < 64; i++) {
		struct cudacore_warp *w = add(p, CUDACORE_WARPS, last(p, CUDACORE_BLOCKS));
		uint32_t warp = last(p, CUDACORE_WARPS);

		w->id = i;
		w->valid_lanes = w->active_lanes = UINT32_MAX;
		for (uint32_t k = 0; k < 32; k++) {
			struct cudacore_lane *l = add(p, CUDACORE_LANES, warp);

			l->number = l->thread[0] = k;
			l->virtual_pc = p->kernel + 0xe0;
		}
	}
}

static void plan_lane(struct plan *p, uint32_t warp, uint32_t number, uint32_t thread, bool inside)
{
	struct cudacore_lane *l = add(p, CUDACORE_LANES, warp);
	uint32_t *r = p->registers[warp][number];

	l->number = number;
	l->thread[0] = thread;
	l->virtual_pc = inside ? p->callee + 0x300 : p->kernel + 0xe0;
	l->physical_pc = inside ? 0x300 : 0xe0;
	for (uint32_t i = 0; i < REGISTERS; i++)
		r[i] = warp << 16 | number << 8 | i;
	l->registers = (struct corefile_blob){ .data = r, .size = sizeof(p->registers[0][0]) };
	for (uint32_t i = 0; i < 64; i++)
		p->local[number][i] = 0x10ca0000 | number << 8 | i;
	l->local_address = 0xfff000;
	l->local = (struct corefile_blob){ .data = p->local[number], .size = sizeof(p->local[0]) };
	if (inside) {
		struct cudacore_frame *f;

		l->call_depth = 1;
		f = add(p, CUDACORE_FRAMES, last(p, CUDACORE_LANES));
		f->return_offset = 0x650;
		f->return_address = p->kernel + 0x650;
	}
}

static void plan_warp(struct plan *p, uint32_t slot, uint32_t first, uint32_t lanes,
		      uint32_t active, bool inside)
{
	struct cudacore_warp *w = add(p, CUDACORE_WARPS, last(p, CUDACORE_BLOCKS));
	uint32_t warp = last(p, CUDACORE_WARPS);

	w->id = slot;
	w->valid_lanes = lanes == 32 ? UINT32_MAX : (UINT32_C(1) << lanes) - 1;
	w->active_lanes = active;
	w->n_registers = REGISTERS;
	for (uint32_t i = 0; i < 63; i++)
		p->uniform[warp][i] = 0xaa000000 | warp << 8 | i;
	w->uniform_registers = (struct corefile_blob){ .data = p->uniform[warp],
							.size = sizeof(p->uniform[0]) };
	for (uint32_t i = 0; i < lanes; i++)
		plan_lane(p, warp, i, first + i, inside);
}

static void plan_block(struct plan *p, uint32_t sm, uint32_t index)
{
	struct cudacore_block *b = add(p, CUDACORE_BLOCKS, sm);

	b->grid_id = 7;
	b->index[0] = index;
	for (uint32_t i = 0; i < 0x500 / 4; i++)
		p->shared[index][i] = 0x5a000000 | index << 16 | i;
	b->shared = (struct corefile_blob){ .data = p->shared[index], .size = 0x500 };
}

/* Block 2, second warp, lane 3 wrote where it may not; its SM knows as well. */
static void plan_fault(struct plan *p)
{
	struct cudacore_warp *w = &p->core.warps[3];

	w->error_pc = p->callee + 0x300;
	w->error_pc_valid = 1;
	p->core.lanes[w->lanes.first + 3].exception = 14;
	p->core.sms[1].exception = 14;
	p->core.sms[1].error_pc = w->error_pc;
	p->core.sms[1].error_pc_valid = 1;
}

static void plan_code(struct plan *p, struct corefile_blob relocated, struct corefile_blob image)
{
	struct cudacore_context *c = add(p, CUDACORE_CONTEXTS, 0);
	struct cudacore_module *m = add(p, CUDACORE_MODULES, 0);
	struct cudacore_grid *g = add(p, CUDACORE_GRIDS, 0);
	struct cudacore_bank *bank;

	c->id = 0x55aa00;
	c->shared_window = UINT64_C(0x7e0000000000);
	c->local_window = UINT64_C(0x7d0000000000);
	m->handle = 0x77bb00;
	m->relocated = relocated;
	m->image = image;
	*g = (struct cudacore_grid){
		.id = 7, .context_id = c->id, .module_handle = m->handle, .function = 1,
		.function_entry = p->kernel, .params_offset = 0x210, .status = 2, .kernel_type = 1,
		.n_registers = REGISTERS, .grid_dim = { 4, 1, 1 }, .block_dim = { 48, 1, 1 },
	};
	p->bank[0x210 / 4] = (uint32_t)p->global;
	p->bank[0x214 / 4] = (uint32_t)(p->global >> 32);
	p->bank[0x218 / 4] = 6;
	g->params = (struct corefile_blob){ .data = p->bank + 0x210 / 4, .size = 12 };
	bank = add(p, CUDACORE_BANKS, 0);
	bank->address = BANK;
	bank->size = sizeof(p->bank);
}

static void plan_memory(struct plan *p)
{
	struct cudacore_memory *m = cudacore_add_memory(&p->core);

	for (uint32_t i = 0; i < 8; i++)
		p->words[i] = 1000 + i;
	*m = (struct cudacore_memory){ .address = p->global,
				       .blob = { .data = p->words, .size = 16 } };
	/* Written apart, read as one. */
	m = cudacore_add_memory(&p->core);
	*m = (struct cudacore_memory){ .address = p->global + 16,
				       .blob = { .data = p->words + 4, .size = 16 } };
	m = cudacore_add_memory(&p->core);
	*m = (struct cudacore_memory){ .address = BANK,
				       .blob = { .data = p->bank, .size = sizeof(p->bank) } };
}

static void plan(struct plan *p, struct corefile_blob relocated, struct corefile_blob image)
{
	uint32_t full = (uint32_t)p->full;

	plan_device(p, 0, "Planted GPU", 3 + full);
	plan_device(p, 1, "Idle GPU", 2);
	plan_code(p, relocated, image);
	for (uint32_t i = 0; i < 3 + full; i++)
		((struct cudacore_sm *)add(p, CUDACORE_SMS, 0))->id = i;
	for (uint32_t i = 0; i < 2; i++)
		((struct cudacore_sm *)add(p, CUDACORE_SMS, 1))->id = i;
	plan_block(p, 1, 0);
	plan_warp(p, 0, 0, 32, 0x0000ffff, false);
	plan_warp(p, 1, 32, 16, 0xffff, false);
	plan_block(p, 1, 2);
	plan_warp(p, 4, 0, 32, 0xffffffff, false);
	plan_warp(p, 5, 32, 16, 0xffff, true);
	plan_block(p, 2, 1);
	plan_warp(p, 63, 0, 32, 0xffffffff, false);
	plan_warp(p, 0, 32, 16, 0xffff, false);
	plan_fault(p);
	for (uint32_t i = 0; i < full; i++)
		plan_full_sm(p, 3 + i);
	plan_memory(p);
}

static void write_core(struct plan *p, const char *path, enum cudacore_layout layout)
{
	struct cudacore_write_options o = { .layout = layout };
	struct corefile_file f = COREFILE_FILE_NULL;
	struct corefile_problem error;
	const char *slash = strrchr(path, '/');
	auto_free char *dir = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
	auto_close int dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r = corefile_file_open(dir_fd, slash ? slash + 1 : path, 0600, &f);

	if (r < 0)
		die(path, strerror(-r));
	if (cudacore_write(&p->core, &o, f.fd, NULL, &error) < 0)
		die(path, error.text);
	r = corefile_file_commit(&f, true);
	if (r < 0)
		die(path, strerror(-r));
	corefile_file_close(&f);
}

static void say_warp(const struct cudacore *c, uint32_t warp)
{
	const struct cudacore_warp *w = &c->warps[warp];
	const struct cudacore_block *b = &c->blocks[w->block];
	const struct cudacore_sm *s = &c->sms[b->sm];

	printf("warp %u %u %u %" PRId64 " (%u,%u,%u) 0x%x 0x%x\n", s->device, s->id, w->id,
	       (int64_t)b->grid_id, b->index[0], b->index[1], b->index[2], w->active_lanes,
	       w->valid_lanes & ~w->active_lanes);
	for (uint32_t i = w->lanes.first; i < w->lanes.first + w->lanes.n; i++) {
		const struct cudacore_lane *l = &c->lanes[i];

		printf("lane %u %u %u %u 0x%" PRIx64 " (%u,%u,%u) %u\n", s->device, s->id, w->id,
		       l->number, l->virtual_pc, l->thread[0], l->thread[1], l->thread[2],
		       cudacore_lane_exception(c, i));
	}
}

static void read_core(const char *path)
{
	struct corefile_problem error;
	struct corefile_map map;
	struct cudacore c;
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);
	int r = corefile_map_open(fd, -1, UINT64_MAX, &map);

	if (r < 0)
		die(path, strerror(-r));
	if (cudacore_read(map.data, map.size, &c, &error) < 0)
		die(path, error.text);
	for (uint32_t i = 0; i < c.n[CUDACORE_DEVICES]; i++)
		printf("device %u %02x:%02x.0 %u %u %u %u %s %s %s\n", i, c.devices[i].pci_bus,
		       c.devices[i].pci_device, c.devices[i].sm_count, c.devices[i].warps_per_sm,
		       c.devices[i].lanes_per_warp, c.devices[i].registers_per_lane,
		       c.devices[i].sm_type, c.devices[i].type, c.devices[i].name);
	for (uint32_t i = 0; i < c.n[CUDACORE_WARPS]; i++)
		say_warp(&c, i);
	for (size_t i = 0; i < c.problems.n; i++)
		printf("problem %s\n", c.problems.list[i].text);
	cudacore_deinit(&c);
	corefile_map_close(&map);
}

static struct corefile_blob read_image(const char *path)
{
	struct corefile_blob blob;
	char *data;
	size_t size;
	int r = fd_read_file(path, (size_t)16 << 20, &data, &size);

	if (r < 0)
		die(path, strerror(-r));
	blob = (struct corefile_blob){ .data = data, .size = size };
	return blob;
}

int main(int argc, char **argv)
{
	static struct plan p;
	struct corefile_blob relocated, image;
	uint64_t layout;

	if (argc != 9 || str_to_u64(argv[2], 0, CUDACORE_LAYOUT_COUNT - 1, &layout) < 0 ||
	    str_to_u64(argv[3], 0, 1000, &p.full) < 0 || str_to_hex64(argv[6], &p.kernel) < 0 ||
	    str_to_hex64(argv[7], &p.callee) < 0 || str_to_hex64(argv[8], &p.global) < 0)
		die("usage", "cuda_core OUT LAYOUT FULL RELOCATED IMAGE KERNEL CALLEE GLOBAL");
	relocated = read_image(argv[4]);
	image = read_image(argv[5]);
	plan(&p, relocated, image);
	write_core(&p, argv[1], (enum cudacore_layout)layout);
	read_core(argv[1]);
	cudacore_deinit(&p.core);
	free((void *)relocated.data);
	free((void *)image.data);
	return 0;
}
