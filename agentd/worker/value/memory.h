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
#include "values/place.h"

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
	bool busy, late; /**< Something was not read as no stop was allowed, or as the time was up. */
	bool noting; /**< Generic memory that is lacking is noted, not fetched. */
	uint64_t noted; /**< Lanes with some, each at one address. */
	uint64_t *noted_at; /**< By lane. */
	int passing; /**< Which of these the last such read failed for: -EBUSY, -ETIMEDOUT; 0: none. */
};

int value_memory_init(struct value_memory *m);
/** Release; a zeroed one is accepted. */
void value_memory_deinit(struct value_memory *m);

/** Has each lane its own of a memory, or may it have? */
bool value_memory_is_own(const struct value_request *k, enum values_space space);
/**
 * Read memory as a lane sees it.
 * @param request  A struct value_request.
 * @return 0, -ETIMEDOUT, -EBUSY (no stop is allowed now), -EDQUOT, -EPIPE (the target has ended), -EAGAIN (it is
 *         noted), or another negative errno.
 */
int value_memory_read(void *request, uint32_t lane, enum values_space space, uint64_t address, void *ret,
		      size_t size);
/**
 * Begin to note what generic memory lanes lack, where a target has any; until value_memory_fetch_noted() reads of
 * such fail with -EAGAIN.
 */
void value_memory_note(struct value_request *k);
/**
 * Fetch what was noted, of all lanes in one stop.
 * @return whether more is there now, so that it is worth while to read again.
 */
bool value_memory_fetch_noted(struct value_request *k);
/** @return what to say of a read that failed so and may succeed later, static; NULL: it is no such error. */
const char *value_memory_passing(int error);
/** Where such a read is why bytes are not known, say that in place of that they are unreadable. */
void value_memory_excuse(const struct value_memory *m, struct values_bytes *b);

#endif /* WORKER_VALUE_MEMORY_H */
