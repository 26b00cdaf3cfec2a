/* SPDX-License-Identifier: MIT */
#ifndef WORKER_VALUE_MEMORY_H
#define WORKER_VALUE_MEMORY_H

/**
 * @file memory.h
 * Memory that values lie in.  That of the wave is fetched in pieces, each of which stops the queue, and
 * which are kept for the request; global memory is read without a stop.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "values/machine.h"

struct value_piece;
struct value_request;

/** What was fetched for one request. */
struct value_memory {
	uint64_t lanes; /**< Those whose private memory will be wanted: it is fetched of all of them at once. */
	struct value_piece *pieces;
	size_t n_pieces; /**< Those with something. */
	unsigned n_fetches; /**< So often the queue was stopped for memory. */
	bool ran; /**< Memory was read while the queue ran between stops. */
	bool out_of_pieces;
};

int value_memory_init(struct value_memory *m);
/** Release; a zeroed one is accepted. */
void value_memory_deinit(struct value_memory *m);

/** Has each lane its own of a memory, or may it have? */
bool value_memory_is_own(const struct value_request *k, enum values_space space);
/**
 * Read memory as a lane sees it.
 * @param request  A struct value_request.
 * @return 0, -ETIMEDOUT, -EPIPE (the target has ended), or a negative errno.
 */
int value_memory_read(void *request, uint32_t lane, enum values_space space, uint64_t address, void *ret,
		      size_t size);

#endif /* WORKER_VALUE_MEMORY_H */
