/* SPDX-License-Identifier: MIT */
/* Calls that read and write registers, memory and code. */
#include <string.h>

#include "sim.h"

/* Of variables; what a launch is given is in bank 0. */
#define CONSTANTS_BANK 3

/* ---- registers ---- */

/* How many registers of a kind a lane or warp has. */
static uint32_t register_limit(const struct call *c, enum sim_register kind)
{
	switch (kind) {
	case REG_NORMAL:
		return c->dev->n_registers;
	case REG_UNIFORM:
		return SIM_UREGISTERS;
	case REG_PREDICATES:
	case REG_UNIFORM_PREDICATES:
		return SIM_PREDICATES;
	default:
		return 2;
	}
}

/* Answer with n registers from the first on. */
static uint32_t registers_read(struct call *c, enum sim_register kind, uint64_t first, uint64_t n)
{
	uint32_t values[256];

	if (n > register_limit(c, kind) || first > register_limit(c, kind) - n)
		return CUDBGABI_ERROR_INVALID_ARGS;
	for (uint64_t i = 0; i < n; i++)
		values[i] = sim_register_get(c->p, kind, c->in, (uint32_t)(first + i));
	call_out(c, values, n * 4);
	return CUDBGABI_SUCCESS;
}

/* Plant n registers from the first on. */
static uint32_t registers_write(struct call *c, enum sim_register kind, uint64_t first,
				const void *data, size_t n)
{
	if (n > register_limit(c, kind) || first > register_limit(c, kind) - n)
		return CUDBGABI_ERROR_INVALID_ARGS;
	for (size_t i = 0; i < n; i++) {
		uint32_t value;

		memcpy(&value, (const uint8_t *)data + i * 4, 4);
		if (sim_register_set(c->p, kind, c->in, (uint32_t)(first + i), value))
			return CUDBGABI_ERROR_INTERNAL;
	}
	return CUDBGABI_SUCCESS;
}

static uint32_t read_register(struct call *c)
{
	return registers_read(c, REG_NORMAL, c->in[4], 1);
}

static uint32_t write_register(struct call *c)
{
	uint32_t v = (uint32_t)c->in[5];

	return registers_write(c, REG_NORMAL, c->in[4], &v, 1);
}

static uint32_t read_register_range60(struct call *c)
{
	return registers_read(c, REG_NORMAL, c->in[4], c->in[5]);
}

/* A range beyond the last register is cut, and the number told. */
static uint32_t read_register_range(struct call *c)
{
	uint64_t limit = c->dev->n_registers, n = c->in[5];
	uint32_t r;

	if (c->in[4] >= limit)
		return CUDBGABI_ERROR_INVALID_ARGS;
	if (n > limit - c->in[4])
		n = limit - c->in[4];
	if (c->p->script.few_registers && n > c->p->script.few_registers)
		n = c->p->script.few_registers;
	r = registers_read(c, REG_NORMAL, c->in[4], n);
	if (!r)
		call_u32(c, (uint32_t)n);
	return r;
}

static uint32_t read_uniform_range(struct call *c)
{
	return registers_read(c, REG_UNIFORM, c->in[3], c->in[4]);
}

static uint32_t write_uniform(struct call *c)
{
	uint32_t v = (uint32_t)c->in[4];

	return registers_write(c, REG_UNIFORM, c->in[3], &v, 1);
}

static uint32_t read_predicates(struct call *c)
{
	return registers_read(c, REG_PREDICATES, 0, c->in[4]);
}

static uint32_t write_predicates(struct call *c)
{
	return registers_write(c, REG_PREDICATES, 0, c->q->buffers[0].data,
			       c->q->buffers[0].size / 4);
}

static uint32_t read_uniform_predicates(struct call *c)
{
	return registers_read(c, REG_UNIFORM_PREDICATES, 0, c->in[3]);
}

static uint32_t write_uniform_predicates(struct call *c)
{
	return registers_write(c, REG_UNIFORM_PREDICATES, 0, c->q->buffers[0].data,
			       c->q->buffers[0].size / 4);
}

static uint32_t read_cc(struct call *c)
{
	return registers_read(c, REG_CC, 0, 1);
}

static uint32_t write_cc(struct call *c)
{
	uint32_t v = (uint32_t)c->in[4];

	return registers_write(c, REG_CC, 0, &v, 1);
}

static uint32_t read_rpc(struct call *c)
{
	uint32_t r = registers_read(c, REG_RPC, 0, 1);

	return r ? r : registers_read(c, REG_RPC, 1, 1);
}

/* Only an active lane has a return address to write. */
static uint32_t write_rpc(struct call *c)
{
	if (!(c->warp->active >> c->in[3] & 1))
		return CUDBGABI_ERROR_INVALID_LANE;
	registers_write(c, REG_RPC, 0, c->q->buffers[0].data, 1);
	return registers_write(c, REG_RPC, 1, c->q->buffers[1].data, 1);
}

/* ---- memory ---- */

/* Answer with planted memory of a space. */
static uint32_t region_read(struct call *c, enum sim_space space, uint64_t address, uint64_t size)
{
	struct sim_region *r = sim_region_find(c->p, space, c->in, address, size);

	if (!r)
		return CUDBGABI_ERROR_INVALID_MEMORY_ACCESS;
	call_out(c, r->bytes + (address - r->address), size);
	return CUDBGABI_SUCCESS;
}

/* Write planted memory of a space. */
static uint32_t region_write(struct call *c, enum sim_space space, uint64_t address)
{
	const struct wire_piece *b = &c->q->buffers[0];
	struct sim_region *r = sim_region_find(c->p, space, c->in, address, b->size);

	if (!r)
		return CUDBGABI_ERROR_INVALID_MEMORY_ACCESS;
	memcpy(r->bytes + (address - r->address), b->data, b->size);
	return CUDBGABI_SUCCESS;
}

/* What was planted goes before what the launch was given. */
static uint32_t read_param(struct call *c)
{
	const struct sim_params *given = c->warp && c->warp->grid ? c->warp->grid->params : NULL;
	uint64_t address = c->in[3], size = c->in[4];

	if (given && !sim_region_find(c->p, SPACE_PARAM, c->in, address, size) &&
	    address >= given->address && address - given->address <= given->size &&
	    size <= given->size - (address - given->address)) {
		call_out(c, given->bytes + (address - given->address), size);
		return CUDBGABI_SUCCESS;
	}
	return region_read(c, SPACE_PARAM, c->in[3], c->in[4]);
}
static uint32_t write_param(struct call *c)
{
	return region_write(c, SPACE_PARAM, c->in[3]);
}
static uint32_t read_shared(struct call *c)
{
	return region_read(c, SPACE_SHARED, c->in[3], c->in[4]);
}
static uint32_t write_shared(struct call *c)
{
	return region_write(c, SPACE_SHARED, c->in[3]);
}
static uint32_t read_local(struct call *c)
{
	return region_read(c, SPACE_LOCAL, c->in[4], c->in[5]);
}
static uint32_t write_local(struct call *c)
{
	return region_write(c, SPACE_LOCAL, c->in[4]);
}
static uint32_t read_const(struct call *c)
{
	return region_read(c, SPACE_CONST, c->in[1], c->in[2]);
}
static uint32_t read_pinned(struct call *c)
{
	return region_read(c, SPACE_PINNED, c->in[0], c->in[1]);
}
static uint32_t write_pinned(struct call *c)
{
	return region_write(c, SPACE_PINNED, c->in[0]);
}

/* Answer with memory at a generic address. */
static uint32_t generic_read(struct call *c, const uint64_t at[4], uint64_t address, uint64_t size)
{
	const uint8_t *bytes = sim_generic(c->p, at, address, size);

	if (!bytes)
		return CUDBGABI_ERROR_ADDRESS_NOT_IN_DEVICE_MEM;
	call_out(c, bytes, size);
	return CUDBGABI_SUCCESS;
}

static uint32_t generic_write(struct call *c, const uint64_t at[4], uint64_t address)
{
	const struct wire_piece *b = &c->q->buffers[0];
	uint8_t *bytes = sim_generic(c->p, at, address, b->size);

	if (!bytes)
		return CUDBGABI_ERROR_ADDRESS_NOT_IN_DEVICE_MEM;
	memcpy(bytes, b->data, b->size);
	return CUDBGABI_SUCCESS;
}

static uint32_t read_generic(struct call *c)
{
	return generic_read(c, c->in, c->in[4], c->in[5]);
}

static uint32_t write_generic(struct call *c)
{
	return generic_write(c, c->in, c->in[4]);
}

/* Whether an address can be read without a device: the windows of blocks and lanes cannot. */
static bool global_only(struct call *c, uint64_t address)
{
	return c->p->n_devices && sim_all_suspended(c->p) &&
	       (address < SIM_LOCAL_BASE || address >= SIM_SHARED_BASE + SIM_WINDOW_SIZE);
}

static uint32_t read_global(struct call *c)
{
	static const uint64_t nowhere[4];

	if (!sim_all_suspended(c->p))
		return CUDBGABI_ERROR_RUNNING_DEVICE;
	return global_only(c, c->in[0]) ? generic_read(c, nowhere, c->in[0], c->in[1])
					: (uint32_t)CUDBGABI_ERROR_ADDRESS_NOT_IN_DEVICE_MEM;
}

static uint32_t write_global(struct call *c)
{
	static const uint64_t nowhere[4];

	if (!sim_all_suspended(c->p))
		return CUDBGABI_ERROR_RUNNING_DEVICE;
	return global_only(c, c->in[0]) ? generic_write(c, nowhere, c->in[0])
					: (uint32_t)CUDBGABI_ERROR_ADDRESS_NOT_IN_DEVICE_MEM;
}

static uint32_t host_address(struct call *c)
{
	struct sim_region *r = sim_region_find(c->p, SPACE_GLOBAL, c->in, c->in[1], 1);

	if (!r || !r->managed)
		return CUDBGABI_ERROR_INVALID_ADDRESS;
	call_u64(c, c->in[1]);
	return CUDBGABI_SUCCESS;
}

/* List managed memory from an address on. */
static uint32_t managed_regions(struct call *c)
{
	struct cudbgabi_memory_info info[64];
	size_t room = call_room(c, 0) / sizeof(info[0]);
	uint64_t from = c->p->script.same_regions ? 0 : c->in[0];
	uint32_t n = 0;

	for (const struct sim_region *r = c->p->regions; r && n < 64 && n < room; r = r->next)
		if (r->managed && r->address + r->size > from)
			info[n++] = (struct cudbgabi_memory_info){ r->address, r->size };
	call_out(c, info, n * sizeof(info[0]));
	call_u32(c, n);
	return CUDBGABI_SUCCESS;
}

/* The constant memory of the variables of a grid's module; NULL: it has none. */
static const struct sim_data *constants_of(struct sim_process *p, uint64_t grid)
{
	const struct sim_data *d = NULL;

	for (const struct sim_grid *g = p->grids; g; g = g->next)
		if (g->id == grid)
			for (d = g->module->data; d && !d->constant; d = d->next)
				;
	return d;
}

/*
 * Find a bank of constant memory.  Bank 3 is that of the variables of the module, if it has any; other
 * banks are planted regions: bank N is the Nth of the list.
 */
static uint32_t const_bank(struct call *c)
{
	uint64_t want = c->in[2];
	const struct sim_data *d = want == CONSTANTS_BANK ? constants_of(c->p, c->in[1]) : NULL;

	if (d) {
		call_u64(c, d->address);
		call_u32(c, (uint32_t)d->size);
		return CUDBGABI_SUCCESS;
	}

	for (const struct sim_region *r = c->p->regions; r; r = r->next)
		if (r->space == SPACE_CONST && r->dev == c->in[0] && !want--) {
			call_u64(c, r->address);
			call_u32(c, (uint32_t)r->size);
			return CUDBGABI_SUCCESS;
		}
	return CUDBGABI_ERROR_MISSING_DATA;
}

/* ---- code ---- */

static uint32_t read_code(struct call *c)
{
	const uint8_t *bytes = sim_code(c->p, (uint32_t)c->in[0], c->in[1], c->in[2]);

	if (!bytes)
		return CUDBGABI_ERROR_INVALID_MEMORY_ACCESS;
	call_out(c, bytes, c->in[2]);
	return CUDBGABI_SUCCESS;
}

static uint32_t is_code_address(struct call *c)
{
	struct sim_module *m;

	call_u8(c, sim_function_at(c->p, c->in[0], &m) != NULL);
	return CUDBGABI_SUCCESS;
}

/* Move an address to an instruction, the next or the previous one. */
static uint32_t adjust_address(struct call *c)
{
	struct sim_module *m;
	struct sim_function *f = sim_function_at(c->p, c->in[1], &m);
	uint64_t a;

	if (!f)
		return CUDBGABI_ERROR_INVALID_ADDRESS;
	a = c->in[1] & ~(uint64_t)(SIM_INSTRUCTION - 1);
	if (c->in[2] == CUDBGABI_ADJ_NEXT_ADDRESS)
		a += SIM_INSTRUCTION;
	else if (c->in[2] == CUDBGABI_ADJ_PREVIOUS_ADDRESS && a > f->address)
		a -= SIM_INSTRUCTION;
	call_u64(c, a);
	return CUDBGABI_SUCCESS;
}

static uint32_t lookup_symbol(struct call *c)
{
	struct sim_module *m;
	struct sim_function *f = sim_function_find(c->p, 0, c->q->buffers[0].data, &m);

	call_u8(c, f != NULL);
	call_u64(c, f ? f->address : 0);
	return CUDBGABI_SUCCESS;
}

/* Find a module of the device by its handle, or by that of its image. */
static struct sim_module *module_of(struct call *c, uint64_t handle, bool image)
{
	for (struct sim_module *m = c->p->modules; m; m = m->next)
		if (m->dev == c->in[0] && (image ? m->image_handle : m->handle) == handle)
			return m;
	return NULL;
}

static uint32_t elf_image(struct call *c)
{
	struct sim_module *m = module_of(c, c->in[1], true);

	if (!m)
		return CUDBGABI_ERROR_INVALID_MODULE;
	if (c->in[2] > CUDBGABI_ELF_IMAGE_TYPE_RELOCATED)
		return CUDBGABI_ERROR_INVALID_ARGS;
	if (call_room(c, 0) < m->size)
		return CUDBGABI_ERROR_BUFFER_TOO_SMALL;
	call_out(c, c->in[2] ? m->relocated : m->image, m->size);
	return CUDBGABI_SUCCESS;
}

static uint32_t loaded_functions(struct call *c, uint64_t start)
{
	struct sim_module *m = module_of(c, c->in[1], false);
	size_t room = call_room(c, 0) / sizeof(struct cudbgabi_function_info), n = 0;
	struct cudbgabi_function_info info[256];

	if (!m)
		return CUDBGABI_ERROR_INVALID_MODULE;
	for (size_t i = start; i < m->n_functions && n < room && n < 256; i++)
		info[n++] = (struct cudbgabi_function_info){ m->functions[i].section,
							     m->functions[i].address };
	call_out(c, info, n * sizeof(info[0]));
	return CUDBGABI_SUCCESS;
}

static uint32_t loaded_functions118(struct call *c)
{
	return loaded_functions(c, 0);
}

static uint32_t loaded_functions123(struct call *c)
{
	return loaded_functions(c, c->in[2]);
}

call_fn *const calls_memory[SLOT_COUNT] = {
	[SLOT_readCodeMemory] = read_code,
	[SLOT_readConstMemory129] = read_const,
	[SLOT_readParamMemory] = read_param,
	[SLOT_readSharedMemory] = read_shared,
	[SLOT_readLocalMemory] = read_local,
	[SLOT_readRegister] = read_register,
	[SLOT_writeParamMemory] = write_param,
	[SLOT_writeSharedMemory] = write_shared,
	[SLOT_writeLocalMemory] = write_local,
	[SLOT_writeRegister] = write_register,
	[SLOT_lookupDeviceCodeSymbol] = lookup_symbol,
	[SLOT_readPinnedMemory] = read_pinned,
	[SLOT_writePinnedMemory] = write_pinned,
	[SLOT_getHostAddrFromDeviceAddr] = host_address,
	[SLOT_getAdjustedCodeAddress] = adjust_address,
	[SLOT_getElfImageByHandle] = elf_image,
	[SLOT_readRegisterRange60] = read_register_range60,
	[SLOT_readGenericMemory] = read_generic,
	[SLOT_writeGenericMemory] = write_generic,
	[SLOT_readGlobalMemory] = read_global,
	[SLOT_writeGlobalMemory] = write_global,
	[SLOT_getManagedMemoryRegionInfo] = managed_regions,
	[SLOT_isDeviceCodeAddress] = is_code_address,
	[SLOT_isDeviceCodeAddress55] = is_code_address,
	[SLOT_readPredicates] = read_predicates,
	[SLOT_writePredicates] = write_predicates,
	[SLOT_readCCRegister] = read_cc,
	[SLOT_writeCCRegister] = write_cc,
	[SLOT_readUniformRegisterRange] = read_uniform_range,
	[SLOT_writeUniformRegister] = write_uniform,
	[SLOT_readUniformPredicates] = read_uniform_predicates,
	[SLOT_writeUniformPredicates] = write_uniform_predicates,
	[SLOT_getLoadedFunctionInfo118] = loaded_functions118,
	[SLOT_getLoadedFunctionInfo] = loaded_functions123,
	[SLOT_getConstBankAddress] = const_bank,
	[SLOT_readRegisterRange] = read_register_range,
	[SLOT_readRpcRegisters] = read_rpc,
	[SLOT_writeRpcRegisters] = write_rpc,
};
