/* SPDX-License-Identifier: MIT */
#ifndef WORKER_SNAPSHOT_CODE_H
#define WORKER_SNAPSHOT_CODE_H

/**
 * @file code.h
 * Code objects that a target has loaded: what lies at an address, whatever the vendor.
 *
 * A back end lists them and reads their bytes (target_ops.code_*); here their ELF headers,
 * symbols and debug information are looked at.  Images stay in a cache for the session; only one
 * at a time is in use, so that the cache's budget holds whatever the target has loaded.
 *
 * All of it was written by the target.  A broken object is one with a problem; the others go on.
 * Addresses are those of the target's memory.
 */

#include "agentd/worker/target/target.h"
#include "symbols/cache.h"

/** What an error of a back end's code_stat and code_read means; static. */
const char *code_problem_text(int error);

/** Budget of the cache of one session. */
#define CODE_CACHE_BYTES ((size_t)64 << 20)

/** What is loaded, at one moment, and how long questions about it may take. */
struct code_set {
	struct target *target;
	struct rpc_arena *arena;
	struct code_object *objects; /**< By start; unknown ones first. */
	size_t n_objects;
	const char *list_problem; /**< As in struct code_list. */
	uint64_t deadline_ns;
	bool late; /**< Something was not looked up because the deadline had passed. */

	/* The image in use. */
	struct code_object *current;
	struct symbols_image *image;
	struct symbols_location *location;
	bool dropped; /**< The cache had no room for an image. */
};

/**
 * List what is loaded.
 * @param a   Holds what the set and its answers point to.
 * @param ms  Time for everything that is asked of this set.
 * @return 0, also when there is no list (list_problem); -ENOMEM.
 *         Release with code_set_deinit() in any case.
 */
int code_set_init(struct code_set *s, struct target *t, struct rpc_arena *a, uint32_t ms);
void code_set_deinit(struct code_set *s);

/** Object that is loaded at an address; NULL: none that we know. */
struct code_object *code_find(const struct code_set *s, uint64_t address);

/**
 * Read an object as a whole, so that everything about it is known.
 * @return 0; -errno with o->problem set, or late.
 */
int code_open(struct code_set *s, struct code_object *o);
/** The same, and find out whether source lines of it are known. */
int code_examine(struct code_set *s, struct code_object *o);

/**
 * Source position and inline chain.
 * @param ret  Valid until the next question; its addresses are those of the ELF file.
 * @return 0, -ENOENT (nothing known: no object there, a broken one, or late).
 */
int code_locate(struct code_set *s, uint64_t address, const struct symbols_location **ret);

/** A symbol at its place in memory. */
struct code_symbol {
	uint64_t address, size;
	const char *name, *raw; /**< For people; as in the file.  In the arena. */
};

/** Function around an address.  @return 0, -ENOENT. */
int code_function(struct code_set *s, uint64_t address, struct code_symbol *ret);
/** Kernel by what a dispatch calls it (AMD: its descriptor's address).  @return 0, -ENOENT. */
int code_kernel(struct code_set *s, uint64_t handle, struct code_symbol *ret);
/** The same for the function around an address, if it is one.  @return 0, -ENOENT. */
int code_kernel_around(struct code_set *s, uint64_t address, struct code_symbol *ret);

/**
 * Sentences about what is missing, in the arena.
 * @param all  Also objects that nothing was asked of.
 * @return how many are in @p ret; at most CODE_MISSING_MAX.
 */
#define CODE_MISSING_MAX 20
size_t code_missing(const struct code_set *s, bool all, const char *ret[CODE_MISSING_MAX]);

#endif /* WORKER_SNAPSHOT_CODE_H */
