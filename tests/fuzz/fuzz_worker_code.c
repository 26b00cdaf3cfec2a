/* SPDX-License-Identifier: MIT */
/* A code object with hostile bytes beside itself, and what is asked about both. */
#include <string.h>

#include "agentd/worker/snapshot/locations.h"
#include "agentd/worker/target/target.h"
#include "fuzzlib.h"

static const uint8_t *bytes;
static size_t n_bytes;

static int list(struct target *t, struct rpc_arena *a, struct code_list *ret)
{
	ret->objects = rpc_arena_array(a, 2, sizeof(*ret->objects));
	ret->n_objects = 2;
	ret->objects[0] = (struct code_object){ .uri = "a", .bias = 0x10000 };
	ret->objects[1] = (struct code_object){ .uri = "b", .bias = 0x11000 };
	return 0;
}

static int stat_object(struct target *t, const struct code_object *o, struct code_stat *ret)
{
	*ret = (struct code_stat){ .size = n_bytes };
	return 0;
}

static ssize_t read_object(struct target *t, const struct code_object *o, uint64_t offset, void *buf,
			   size_t size)
{
	size_t left = offset < n_bytes ? n_bytes - (size_t)offset : 0;

	memcpy(buf, bytes + (offset < n_bytes ? offset : n_bytes), size < left ? size : left);
	return (ssize_t)(size < left ? size : left);
}

static void done(struct target *t)
{
}

static const struct target_ops ops = { .code_list = list, .code_stat = stat_object,
				       .code_read = read_object, .code_done = done };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct target t = { .ops = &ops };
	const char *missing[CODE_MISSING_MAX];
	struct wave waves[96];
	struct rpc_arena arena;
	struct locations places;
	struct code_set set;

	bytes = data;
	n_bytes = size;
	memset(waves, 0, sizeof(waves));
	for (size_t i = 0; i < 96; i++) {
		waves[i].pc = 0x10000 + i * 0x80 + i % 4;
		waves[i].kernel_handle = i % 3 ? 0x10000 + i * 0x40 : 0;
	}
	rpc_arena_init(&arena, (size_t)64 << 20);
	if (code_set_init(&set, &t, &arena, 2000) == 0 &&
	    locations_find(&set, waves, 96, &places) == 0) {
		for (size_t i = 0; i < 96; i++)
			if (waves[i].place >= places.n_places || waves[i].kernel >= places.n_kernels ||
			    waves[i].site >= places.n_sites)
				__builtin_trap();
		if (code_missing(&set, true, missing) > CODE_MISSING_MAX)
			__builtin_trap();
		locations_deinit(&places);
	}
	code_set_deinit(&set);
	symbols_cache_destroy(t.code_cache);
	rpc_arena_deinit(&arena);
	return 0;
}
