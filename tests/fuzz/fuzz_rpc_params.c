/* SPDX-License-Identifier: MIT */
#include "fuzzlib.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/out.h"
#include "rpc_gen.h"

/* What was accepted is written, read again and written again: the same text. */
static void round_trip(const struct rpc_struct *structure, struct json_object *obj, bool strict)
{
	auto_rpc_arena struct rpc_arena arena;
	auto_out struct out first, second;
	struct json_object *again;
	struct agent_err err = { 0 };
	struct rpc_decoder d;
	void *value;

	rpc_arena_init(&arena, 0);
	out_init(&first, 0);
	out_init(&second, 0);
	rpc_decoder_init_strict(&d, &arena, &err);
	d.strict = strict;
	value = rpc_arena_alloc(&arena, structure->size);
	if (rpc_decode_struct(&d, structure, obj, value) < 0) {
		if (!err.code || !err.message[0])
			abort();
		return;
	}
	rpc_encode_struct(&first, structure, value);
	if (rpc_json_parse(first.data, first.size, &again, &err) < 0 ||
	    rpc_decode_struct(&d, structure, again, value) < 0)
		abort();
	rpc_json_put(again);
	rpc_encode_struct(&second, structure, value);
	if (first.size != second.size || memcmp(first.data, second.data, first.size))
		abort();
}

/* One text through the decoder of every method, as parameters and as a result. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct json_object *obj;

	if (rpc_json_parse((const char *)data, size, &obj, NULL) < 0)
		return 0;
	for (int m = 0; m < RPC_METHOD_COUNT; m++) {
		round_trip(rpc_methods[m].params, obj, true);
		round_trip(rpc_methods[m].result, obj, false);
	}
	rpc_json_put(obj);
	return 0;
}
