/* SPDX-License-Identifier: MIT */
#include "fuzzlib.h"

#include <stdlib.h>

#include "protocol/rpc_wire.h"

#define BODY_MAX 64

/* The first byte says how the rest is cut into pieces. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t piece = size ? 1 + data[0] % 16 : 1, bodies = 0;
	struct rpc_wire w;
	const char *body;
	size_t n;
	int r = 0;

	rpc_wire_init(&w, BODY_MAX);
	for (size_t at = 1; at < size && r >= 0; at += piece) {
		size_t left = size - at < piece ? size - at : piece;

		if (rpc_wire_feed(&w, data + at, left) < 0)
			abort();
		while ((r = rpc_wire_next(&w, &body, &n)) > 0) {
			if (r == RPC_WIRE_BODY && n > BODY_MAX)
				abort();
			for (size_t i = 0; r == RPC_WIRE_BODY && i < n; i++)
				bodies += (unsigned char)body[i];
		}
		if (w.size - w.head > RPC_WIRE_HEADER_MAX + piece)
			abort();
	}
	if (r >= 0)
		r = rpc_wire_finish(&w, &body, &n);
	if ((r < 0) != (rpc_wire_problem(&w)[0] != '\0') || bodies > size * 255)
		abort();
	rpc_wire_deinit(&w);
	return 0;
}
