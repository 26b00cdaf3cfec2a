/* SPDX-License-Identifier: MIT */
#include "agentd/worker/snapshot/convert.h"

#include "base/out.h"

enum rpc_exception *convert_exceptions(struct rpc_arena *a, uint64_t mask, size_t *ret_n)
{
	enum rpc_exception *list = rpc_arena_array(a, 64, sizeof(*list));
	size_t n = 0;

	for (int code = 1; list && code <= 64; code++)
		if (mask >> (code - 1) & 1 && rpc_exception_name(code))
			list[n++] = (enum rpc_exception)code;
	*ret_n = n;
	return list;
}

const char *convert_exception_words(struct rpc_arena *a, const enum rpc_exception *list, size_t n)
{
	auto_out struct out text;

	out_init(&text, 0);
	for (size_t i = 0; i < n; i++)
		for (size_t v = 0; v < rpc_exception_enum.n; v++)
			if (rpc_exception_enum.values[v].value == (int64_t)list[i])
				out_fmt(&text, "%s%s", text.size ? " " : "",
					rpc_exception_enum.values[v].doc);
	return rpc_arena_strdup(a, text.data ? text.data : "");
}

enum rpc_trap *convert_traps(struct rpc_arena *a, uint32_t mask, size_t *ret_n)
{
	enum rpc_trap *list = rpc_arena_array(a, 32, sizeof(*list));
	size_t n = 0;

	for (int bit = 0; list && bit < 32; bit++)
		if (mask >> bit & 1 && rpc_trap_name(INT64_C(1) << bit))
			list[n++] = (enum rpc_trap)(UINT32_C(1) << bit);
	*ret_n = n;
	return list;
}

enum rpc_flag *convert_flags(struct rpc_arena *a, uint32_t mask, size_t *ret_n)
{
	enum rpc_flag *list = rpc_arena_array(a, 32, sizeof(*list));
	size_t n = 0;

	for (int bit = 0; list && bit < 32; bit++)
		if (mask >> bit & 1 && rpc_flag_name(INT64_C(1) << bit))
			list[n++] = (enum rpc_flag)(UINT32_C(1) << bit);
	*ret_n = n;
	return list;
}

uint64_t convert_exception_mask(const enum rpc_exception *list, size_t n)
{
	uint64_t mask = 0;

	for (size_t i = 0; i < n; i++)
		mask |= TARGET_EXCEPTION_BIT(list[i]);
	return mask;
}

uint32_t convert_trap_mask(const enum rpc_trap *list, size_t n)
{
	uint32_t mask = 0;

	for (size_t i = 0; i < n; i++)
		mask |= (uint32_t)list[i];
	return mask;
}

uint32_t convert_flag_mask(const enum rpc_flag *list, size_t n)
{
	uint32_t mask = 0;

	for (size_t i = 0; i < n; i++)
		mask |= (uint32_t)list[i];
	return mask;
}

/* The members that the schema has for AMD devices only. */
static void convert_kfd_facts(struct rpc_arena *a, struct rpc_device *o,
			      const struct target_device *d)
{
	o->has_node = o->has_gfx_target_version = o->has_fw_version = true;
	o->has_simd_count = o->has_max_waves_per_simd = true;
	o->has_lds_base = o->has_lds_limit = o->has_scratch_base = o->has_scratch_limit = true;
	o->has_gpuvm_base = o->has_gpuvm_limit = o->has_capability = o->has_debug_prop = true;
	o->node = d->node;
	o->render_node = d->render_node[0] ? rpc_arena_strdup(a, d->render_node) : NULL;
	o->gfx_target_version = d->gfx_target_version;
	o->fw_version = d->fw_version;
	o->simd_count = d->simd_count;
	o->max_waves_per_simd = d->max_waves_per_simd;
	o->lds_base = d->lds_base;
	o->lds_limit = d->lds_limit;
	o->scratch_base = d->scratch_base;
	o->scratch_limit = d->scratch_limit;
	o->gpuvm_base = d->gpuvm_base;
	o->gpuvm_limit = d->gpuvm_limit;
	o->capability = d->capability;
	o->has_capability2 = d->has_capability2;
	o->capability2 = d->capability2;
	o->debug_prop = d->debug_prop;
}

static void convert_device(struct rpc_arena *a, struct rpc_device *o, const struct target_device *d)
{
	*o = (struct rpc_device){
		.gpu_id = d->gpu_id,
		.name = rpc_arena_strdup(a, d->name),
		.arch = rpc_arena_strdup(a, d->arch),
		.pci = rpc_arena_strdup(a, d->pci),
		.vendor_id = d->vendor_id,
		.has_device_id = d->has_pci_ids,
		.device_id = d->device_id,
		.has_revision_id = d->has_pci_ids,
		.revision_id = d->revision_id,
		.units = d->units,
		.max_waves = d->max_waves,
		.has_memory_bytes = d->memory_bytes != 0,
		.memory_bytes = d->memory_bytes,
		.watchpoints = d->watchpoints,
		.debuggable = d->debuggable,
	};
	if (d->has_kfd_facts)
		convert_kfd_facts(a, o, d);
	o->exceptions = convert_exceptions(a, d->exceptions, &o->n_exceptions);
}

struct rpc_device *convert_devices(struct rpc_arena *a, const struct target_device *d, size_t n)
{
	struct rpc_device *list = rpc_arena_array(a, n, sizeof(*list));

	for (size_t i = 0; list && i < n; i++)
		convert_device(a, &list[i], &d[i]);
	return list;
}

