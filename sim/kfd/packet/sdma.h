/* SPDX-License-Identifier: MIT */
#ifndef KFDSIM_SDMA_H
#define KFDSIM_SDMA_H

/**
 * @file sdma.h
 * Commands of AMD's copy engines, as runtimes write them into the rings of SDMA queues.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Bytes of the longest command but a NOP, which is skipped over as a whole. */
#define SDMA_COMMAND_MAX 32u

/** What a command does. */
enum sdma_kind {
	SDMA_NOTHING,	/**< A NOP, a flush of caches. */
	SDMA_COPY,	/**< size bytes from source to address. */
	SDMA_FILL,	/**< size bytes at address with value. */
	SDMA_WRITE,	/**< The 32-bit value to address. */
	SDMA_ADD,	/**< Add the 64-bit value at address. */
	SDMA_TRAP,	/**< Signal event number value. */
	SDMA_WAIT,	/**< Until the word at address, masked, compares to value. */
	SDMA_TIMESTAMP, /**< The time to address, 64 bits. */
};

/** One command. */
struct sdma_command {
	enum sdma_kind kind;
	uint64_t address, source, size, value;
	uint32_t mask;
	uint32_t function; /**< Of SDMA_WAIT: 0 always, 1 <, 2 <=, 3 ==, 4 !=, 5 >=, 6 >. */
	uint64_t length;   /**< Bytes of the command itself. */
};

/**
 * Read the command at the start of @p bytes.
 * @return 0, -EAGAIN (it is longer than @p size), -ENOTSUP (not one that runtimes use).
 */
int sdma_command_parse(const void *bytes, size_t size, struct sdma_command *ret);
/** Whether the word that a SDMA_WAIT reads lets it go. */
bool sdma_wait_is_over(const struct sdma_command *c, uint32_t word);

#endif /* KFDSIM_SDMA_H */
