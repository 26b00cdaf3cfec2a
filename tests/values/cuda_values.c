/* SPDX-License-Identifier: MIT */
/*
 * Writes a CUDA core with random registers and memory for test_nvidia.py, reads it back, and says
 * what the variables of each lane are.
 *
 * usage: cuda_values OUT RELOCATED IMAGE KERNEL PARAMETERS GLOBAL SEED
 *   KERNEL      address of its first instruction
 *   PARAMETERS  where they begin in their space
 *   GLOBAL      address of the module's variables
 * stdin has a line for each lane: PC, and an address of the caller that it returns to, or 0.
 * Output: `lane W L FRAME FUNCTION`, then rows: name, kind, block, state, bytes, place, reason.
 */
#include <dwarf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/str.h"
#include "corefile/cuda/read.h"
#include "corefile/cuda/write.h"
#include "corefile/file.h"
#include "symbols/debug_info.h"
#include "tests/values/state_names.h"
#include "values/scope.h"

#define REGISTERS    255u
#define LANES_MAX    1024u
#define LOCAL_WORDS  1024u
#define LOCAL_START  0xfff000u
#define SHARED_WORDS 0x4000u
#define GLOBAL_WORDS 1024u
#define PARAM_WORDS  1024u
#define VALUE_MAX    65536u

struct lane {
	uint64_t pc, caller;
	uint32_t registers[REGISTERS], predicates[7], local[LOCAL_WORDS];
};

static struct lane lanes[LANES_MAX];
static uint32_t uniform[63], shared[SHARED_WORDS], global[GLOBAL_WORDS], parameters[PARAM_WORDS];
static uint64_t state_of_random;

__attribute__((noreturn)) static void die(const char *what)
{
	fprintf(stderr, "cuda_values: %s\n", what);
	exit(1);
}

static uint32_t random_word(void)
{
	uint64_t x = state_of_random += UINT64_C(0x9e3779b97f4a7c15);

	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return (uint32_t)((x ^ x >> 31) >> 32);
}

static void fill(uint32_t *words, size_t n)
{
	for (size_t i = 0; i < n; i++)
		words[i] = random_word();
}

static void *add(struct cudacore *c, enum cudacore_table table, uint32_t parent)
{
	void *row = cudacore_add(c, table, parent);

	if (!row)
		die("out of memory");
	return row;
}

static void plan_lane(struct cudacore *c, uint32_t warp, uint32_t n, struct lane *from,
		      uint64_t kernel)
{
	struct cudacore_lane *l = add(c, CUDACORE_LANES, warp);

	fill(from->registers, REGISTERS);
	fill(from->local, LOCAL_WORDS);
	for (size_t i = 0; i < 7; i++)
		from->predicates[i] = random_word() & 1;
	/* A stack pointer as it is. */
	from->registers[1] = LOCAL_START + 0x800 + (random_word() & 0x3f0);
	l->number = n % 32;
	l->thread[0] = n;
	l->virtual_pc = from->pc;
	l->physical_pc = from->pc - kernel;
	l->registers = (struct corefile_blob){ .data = from->registers, .size = sizeof(from->registers) };
	l->predicates = (struct corefile_blob){ .data = from->predicates, .size = sizeof(from->predicates) };
	l->local = (struct corefile_blob){ .data = from->local, .size = sizeof(from->local) };
	l->local_address = LOCAL_START;
	if (from->caller) {
		struct cudacore_frame *f;

		l->call_depth = 1;
		f = add(c, CUDACORE_FRAMES, c->n[CUDACORE_LANES] - 1);
		f->return_address = from->caller;
		f->return_offset = from->caller - kernel;
	}
}

static void plan(struct cudacore *c, struct corefile_blob relocated, struct corefile_blob image,
		 size_t n, uint64_t kernel, uint64_t at_parameters, uint64_t at_global)
{
	struct cudacore_device *d = add(c, CUDACORE_DEVICES, 0);
	struct cudacore_context *ctx;
	struct cudacore_module *m;
	struct cudacore_grid *g;
	struct cudacore_block *b;
	struct cudacore_memory *memory;

	*d = (struct cudacore_device){
		.name = "Planted GPU", .type = "GH100", .sm_type = "sm_90", .sm_count = 1,
		.warps_per_sm = 64, .lanes_per_warp = 32, .registers_per_lane = REGISTERS,
		.predicates_per_lane = 7, .sm_major = 9, .instruction_bytes = 16,
		.uniform_registers = 63, .uniform_predicates = 7,
	};
	ctx = add(c, CUDACORE_CONTEXTS, 0);
	ctx->id = 0x55aa00;
	ctx->shared_window = UINT64_C(0x7e0000000000);
	ctx->local_window = UINT64_C(0x7d0000000000);
	m = add(c, CUDACORE_MODULES, 0);
	m->handle = 0x77bb00;
	m->relocated = relocated;
	m->image = image;
	g = add(c, CUDACORE_GRIDS, 0);
	*g = (struct cudacore_grid){
		.id = 7, .context_id = 0x55aa00, .module_handle = m->handle, .function = 1,
		.function_entry = kernel, .params_offset = at_parameters, .status = 2,
		.kernel_type = 1, .n_registers = REGISTERS, .grid_dim = { 1, 1, 1 },
		.block_dim = { (uint32_t)n, 1, 1 },
	};
	g->params = (struct corefile_blob){ .data = parameters, .size = sizeof(parameters) };
	add(c, CUDACORE_SMS, 0);
	b = add(c, CUDACORE_BLOCKS, 0);
	b->grid_id = 7;
	b->shared = (struct corefile_blob){ .data = shared, .size = sizeof(shared) };
	for (uint32_t i = 0; i < n; i++) {
		if (i % 32 == 0) {
			struct cudacore_warp *w = add(c, CUDACORE_WARPS, 0);

			w->id = i / 32;
			w->valid_lanes = w->active_lanes =
				n - i >= 32 ? UINT32_MAX : (UINT32_C(1) << (n - i)) - 1;
			w->n_registers = REGISTERS;
			w->uniform_registers = (struct corefile_blob){ .data = uniform, .size = sizeof(uniform) };
		}
		plan_lane(c, i / 32, i, &lanes[i], kernel);
	}
	memory = cudacore_add_memory(c);
	*memory = (struct cudacore_memory){ .address = at_global,
					    .blob = { .data = global, .size = sizeof(global) } };
}

static void write_core(struct cudacore *c, const char *path)
{
	struct corefile_file f = COREFILE_FILE_NULL;
	struct cudacore_write_options o = { 0 };
	struct corefile_problem error;
	const char *slash = strrchr(path, '/');
	auto_free char *dir = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
	auto_close int dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (corefile_file_open(dir_fd, slash ? slash + 1 : path, 0600, &f) < 0)
		die(path);
	if (cudacore_write(c, &o, f.fd, NULL, &error) < 0)
		die(error.text);
	if (corefile_file_commit(&f, true) < 0)
		die(path);
	corefile_file_close(&f);
}

/* ------------------------------------------------------------------ reading ------------------ */

struct view {
	const struct cudacore *c;
	uint32_t warp; /* Its first lane is warp * 32. */
};

static const struct cudacore_lane *lane_of(const struct view *v, uint32_t lane)
{
	return &v->c->lanes[v->c->warps[v->warp].lanes.first + lane];
}

static int read_word(const struct corefile_blob *b, uint32_t number, uint32_t *ret)
{
	if (b->size / 4 <= number)
		return -ENXIO;
	memcpy(ret, (const char *)b->data + (size_t)number * 4, 4);
	return 0;
}

static int read_register(void *context, uint32_t lane, enum values_file file, uint32_t number,
			 uint32_t *ret)
{
	const struct view *v = context;

	switch (file) {
	case VALUES_FILE_REGISTER: return read_word(&lane_of(v, lane)->registers, number, ret);
	case VALUES_FILE_PREDICATE: return read_word(&lane_of(v, lane)->predicates, number, ret);
	case VALUES_FILE_UNIFORM: return read_word(&v->c->warps[v->warp].uniform_registers, number, ret);
	default: return -ENXIO;
	}
}

static int read_blob(const struct corefile_blob *b, uint64_t start, uint64_t address, void *ret,
		     size_t size)
{
	if (address < start || address - start > b->size || size > b->size - (address - start))
		return -EIO;
	memcpy(ret, (const char *)b->data + (address - start), size);
	return 0;
}

static int read_memory(void *context, uint32_t lane, enum values_space space, uint64_t address,
		       void *ret, size_t size)
{
	const struct view *v = context;
	const struct cudacore_lane *l = lane_of(v, lane);
	const struct cudacore_grid *g = &v->c->grids[0];

	switch (space) {
	case VALUES_SPACE_PRIVATE: return read_blob(&l->local, l->local_address, address, ret, size);
	case VALUES_SPACE_SHARED: return read_blob(&v->c->blocks[0].shared, 0, address, ret, size);
	case VALUES_SPACE_PARAMETER: return read_blob(&g->params, g->params_offset, address, ret, size);
	case VALUES_SPACE_GLOBAL:
		return cudacore_read_memory(v->c, address, ret, size) == size ? 0 : -EIO;
	default: return -EIO;
	}
}

static uint64_t number(Dwarf_Die *d, unsigned attribute, uint64_t otherwise)
{
	Dwarf_Attribute a;
	Dwarf_Word v;

	return dwarf_attr(d, attribute, &a) && dwarf_formudata(&a, &v) == 0 ? v : otherwise;
}

static uint64_t size_of(struct debug_info *d, Dwarf_Die type)
{
	uint64_t n = 1;

	for (unsigned depth = 0; depth < 64; depth++) {
		struct debug_children c;
		Dwarf_Attribute a;
		Dwarf_Die child;

		if (dwarf_hasattr(&type, DW_AT_byte_size))
			return n * number(&type, DW_AT_byte_size, 0);
		if (dwarf_tag(&type) == DW_TAG_pointer_type || dwarf_tag(&type) == DW_TAG_reference_type)
			return n * 8;
		debug_children_init(&c, d, &type, 100);
		while (dwarf_tag(&type) == DW_TAG_array_type && debug_children_next(&c, &child))
			n *= number(&child, DW_AT_count, 0);
		if (!dwarf_attr(&type, DW_AT_type, &a) || !dwarf_formref_die(&a, &type))
			break;
	}
	return 0;
}

static void show(struct values_image *i, struct debug_info *d, const struct values_scope *s,
		 const struct values_variable *v, const struct values_frame *f)
{
	static const char *const kinds[] = { "argument", "local", "static" };
	static uint8_t data[VALUE_MAX], known[VALUE_MAX];
	static struct values_place p;
	auto_out struct out place = { 0 };
	uint64_t size = v->has_type ? size_of(d, v->type) : 0;
	struct values_bytes b;

	if (size > VALUE_MAX)
		size = VALUE_MAX;
	values_variable_find(i, s, v, f, &p);
	values_place_read(&p, f, size, data, known, &b);
	values_place_print(&p, f, &place);
	printf("%s\t%s\t%u\t%s\t%" PRIx64 "\t", v->name ? v->name : "", kinds[v->kind], v->block,
	       state_name(b.state), (uint64_t)dwarf_dieoffset((Dwarf_Die *)&v->die));
	for (uint64_t k = 0; k < size; k++)
		if (known[k])
			printf("%02x", data[k]);
		else
			printf("--");
	printf("\t%s\t%s\n", place.data ? place.data : "", b.reason ? b.reason : "");
}

static void show_frame(struct values_image *i, struct debug_info *d, uint32_t lane, unsigned level,
		       struct values_frame *f)
{
	struct values_scope s;

	if (values_scope_find(i, values_frame_lookup(f), 0, &s) == 0) {
		values_image_enter(i, &s, f);
		printf("lane %u %u %u %s\n", lane / 32, lane % 32, level, s.function);
		for (size_t k = 0; k < s.n; k++)
			show(i, d, &s, &s.items[k], f);
	}
	/* The name lives in the image. */
	values_scope_deinit(&s);
}

static void show_lane(struct values_image *i, struct debug_info *d, const struct cudacore *c, uint32_t n)
{
	struct view v = { c, n / 32 };
	struct values_machine m = { .context = &v, .read_register = read_register,
				    .read_memory = read_memory, .lanes = 32 };
	const struct cudacore_lane *l = lane_of(&v, n % 32);
	static struct values_frame inner, outer;

	inner = (struct values_frame){ .machine = &m, .lane = n % 32, .pc = l->virtual_pc };
	show_frame(i, d, n, 0, &inner);
	if (!l->frames.n)
		return;
	outer = (struct values_frame){ .machine = &m, .lane = n % 32, .callee = &inner,
				       .pc = c->frames[l->frames.first].return_address };
	show_frame(i, d, n, 1, &outer);
}

static void read_core(const char *path)
{
	struct corefile_problem error;
	struct symbols_image *image;
	struct values_image *values;
	struct corefile_map map;
	struct cudacore c;
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (corefile_map_open(fd, -1, UINT64_MAX, &map) < 0)
		die(path);
	if (cudacore_read(map.data, map.size, &c, &error) < 0)
		die(error.text);
	if (symbols_image_create(c.modules[0].relocated.data, c.modules[0].relocated.size, &image) < 0 ||
	    values_image_open(image, &values) < 0)
		die("no image");
	for (uint32_t n = 0; n < c.n[CUDACORE_LANES]; n++)
		show_lane(values, symbols_image_debug_info(image), &c, n);
	symbols_image_destroy(image);
	cudacore_deinit(&c);
	corefile_map_close(&map);
}

static struct corefile_blob read_image(const char *path)
{
	struct corefile_blob blob;
	char *data;
	size_t size;

	if (fd_read_file(path, (size_t)16 << 20, &data, &size) < 0)
		die(path);
	blob = (struct corefile_blob){ .data = data, .size = size };
	return blob;
}

int main(int argc, char **argv)
{
	uint64_t kernel, at_parameters, at_global;
	struct corefile_blob relocated, image;
	static struct cudacore c;
	size_t n = 0;

	if (argc != 8 || str_to_hex64(argv[4], &kernel) < 0 ||
	    str_to_hex64(argv[5], &at_parameters) < 0 || str_to_hex64(argv[6], &at_global) < 0 ||
	    str_to_u64(argv[7], 0, UINT64_MAX, &state_of_random) < 0)
		die("usage: cuda_values OUT RELOCATED IMAGE KERNEL PARAMETERS GLOBAL SEED");
	while (n < LANES_MAX && scanf("%" SCNx64 " %" SCNx64, &lanes[n].pc, &lanes[n].caller) == 2)
		n++;
	relocated = read_image(argv[2]);
	image = read_image(argv[3]);
	fill(shared, SHARED_WORDS);
	fill(global, GLOBAL_WORDS);
	fill(parameters, PARAM_WORDS);
	fill(uniform, 63);
	plan(&c, relocated, image, n, kernel, at_parameters, at_global);
	write_core(&c, argv[1]);
	cudacore_deinit(&c);
	read_core(argv[1]);
	free((void *)relocated.data);
	free((void *)image.data);
	return 0;
}
