/* SPDX-License-Identifier: MIT */
#include "agentd/worker/convert.h"

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

struct rpc_runtime convert_runtime(const struct target_runtime *r)
{
	return (struct rpc_runtime){ .state = r->state,
				     .r_debug = r->r_debug,
				     .ttmp_setup = r->ttmp_setup,
				     .has_r_version = r->has_r_version,
				     .r_version = r->r_version };
}

static void convert_device(struct rpc_arena *a, struct rpc_device *o, const struct target_device *d)
{
	*o = (struct rpc_device){
		.gpu_id = d->gpu_id,
		.name = rpc_arena_strdup(a, d->name),
		.gfx = rpc_arena_strdup(a, d->gfx),
		.node = d->node,
		.pci = rpc_arena_strdup(a, d->pci),
		.render_node = d->render_node[0] ? rpc_arena_strdup(a, d->render_node) : NULL,
		.vendor_id = d->vendor_id,
		.device_id = d->device_id,
		.revision_id = d->revision_id,
		.gfx_target_version = d->gfx_target_version,
		.fw_version = d->fw_version,
		.simd_count = d->simd_count,
		.max_waves_per_simd = d->max_waves_per_simd,
		.xcc_count = d->xcc_count,
		.has_memory_bytes = d->memory_bytes != 0,
		.memory_bytes = d->memory_bytes,
		.lds_base = d->lds_base,
		.lds_limit = d->lds_limit,
		.scratch_base = d->scratch_base,
		.scratch_limit = d->scratch_limit,
		.gpuvm_base = d->gpuvm_base,
		.gpuvm_limit = d->gpuvm_limit,
		.capability = d->capability,
		.has_capability2 = d->has_capability2,
		.capability2 = d->capability2,
		.debug_prop = d->debug_prop,
		.watchpoints = d->watchpoints,
		.debuggable = d->debuggable,
	};
	o->exceptions = convert_exceptions(a, d->exceptions, &o->n_exceptions);
}

struct rpc_device *convert_devices(struct rpc_arena *a, const struct target_device *d, size_t n)
{
	struct rpc_device *list = rpc_arena_array(a, n, sizeof(*list));

	for (size_t i = 0; list && i < n; i++)
		convert_device(a, &list[i], &d[i]);
	return list;
}

static void convert_queue(struct rpc_arena *a, struct rpc_queue *o, const struct target_queue *q)
{
	*o = (struct rpc_queue){
		.queue_id = q->queue_id,
		.gpu_id = q->gpu_id,
		.type = q->type,
		.ring_base = q->ring_base,
		.ring_bytes = q->ring_bytes,
		.read_pointer = q->read_pointer,
		.write_pointer = q->write_pointer,
		.has_read_index = q->has_read_index,
		.read_index = q->read_index,
		.has_write_index = q->has_write_index,
		.write_index = q->write_index,
		.save_area = q->save_area,
		.save_area_bytes = q->save_area_bytes,
		.suspended = q->suspended,
	};
	o->exceptions = convert_exceptions(a, q->exceptions, &o->n_exceptions);
}

struct rpc_queue *convert_queues(struct rpc_arena *a, const struct target_queue *q, size_t n,
				 const uint32_t *gpu_id, size_t *ret_n)
{
	struct rpc_queue *list = rpc_arena_array(a, n, sizeof(*list));
	size_t kept = 0;

	for (size_t i = 0; list && i < n; i++)
		if (!gpu_id || q[i].gpu_id == *gpu_id)
			convert_queue(a, &list[kept++], &q[i]);
	*ret_n = kept;
	return list;
}

void convert_queue_stops(struct rpc_queue *queues, const struct target_queue_stop *stops, size_t n)
{
	for (size_t i = 0; stops && queues && i < n; i++) {
		queues[i].has_stopped_us = stops[i].has_stopped_us;
		queues[i].stopped_us = stops[i].stopped_us;
		queues[i].has_not_stopped = stops[i].has_not_stopped;
		queues[i].not_stopped = stops[i].not_stopped;
	}
}

struct rpc_queue_result *convert_results(struct rpc_arena *a, const struct target_queue_result *r,
					 size_t n, enum rpc_queue_verdict count,
					 uint32_t *ret_count)
{
	struct rpc_queue_result *list = rpc_arena_array(a, n, sizeof(*list));

	*ret_count = 0;
	for (size_t i = 0; list && i < n; i++) {
		list[i] = (struct rpc_queue_result){ .queue_id = r[i].queue_id,
						     .verdict = r[i].verdict };
		*ret_count += r[i].verdict == count;
	}
	return list;
}

struct rpc_watchpoint *convert_watches(struct rpc_arena *a, const struct target_watch *w, size_t n)
{
	struct rpc_watchpoint *list = rpc_arena_array(a, n, sizeof(*list));

	for (size_t i = 0; list && i < n; i++)
		list[i] = (struct rpc_watchpoint){ .gpu_id = w[i].gpu_id,
						   .id = w[i].id,
						   .address = w[i].address,
						   .size = w[i].size,
						   .mode = w[i].mode };
	return list;
}

char *convert_base64(struct rpc_arena *a, const void *data, size_t size)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	char *text = rpc_arena_alloc(a, (size + 2) / 3 * 4 + 1), *o = text;
	const uint8_t *p = data;

	if (!text)
		return NULL;
	for (; size >= 3; size -= 3, p += 3) {
		uint32_t v = (uint32_t)p[0] << 16 | (uint32_t)p[1] << 8 | p[2];

		*o++ = digits[v >> 18];
		*o++ = digits[v >> 12 & 63];
		*o++ = digits[v >> 6 & 63];
		*o++ = digits[v & 63];
	}
	if (size) {
		uint32_t v = (uint32_t)p[0] << 16 | (size > 1 ? (uint32_t)p[1] << 8 : 0);

		*o++ = digits[v >> 18];
		*o++ = digits[v >> 12 & 63];
		*o++ = size > 1 ? digits[v >> 6 & 63] : '=';
		*o++ = '=';
	}
	*o = '\0';
	return text;
}
