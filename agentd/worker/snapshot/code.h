/* SPDX-License-Identifier: MIT */
#ifndef WORKER_SNAPSHOT_CODE_H
#define WORKER_SNAPSHOT_CODE_H

/**
 * @file code.h
 * Code objects that a target has loaded: what lies at an address, whatever the vendor.
 *
 * A back end lists the objects and reads their bytes (target_ops.code_*); this module looks at
 * their ELF headers, symbols and debug information.  Images stay in a cache for the session; only
 * one at a time is in use, so that the cache's budget holds whatever the target has loaded.
 *
 * The target wrote all of it.  A broken object gets a problem, and the other objects are used all
 * the same.  Addresses are those of the target's memory.
 */

#include "agentd/worker/target/target.h"
#include "symbols/cache.h"

/** @return what an error of a back end's code_stat or code_read means, static: "it ...". */
const char *code_problem_text(int error);

/** Bytes that the cache of one session may hold. */
#define CODE_CACHE_BYTES ((size_t)64 << 20)

/** What is loaded at one moment, and how long questions about it may take. */
struct code_set {
	struct target *target;
	struct rpc_arena *arena;
	struct code_object *objects; /**< In the order of `start`; unknown ones first. */
	size_t n_objects;
	const char *list_problem; /**< As in struct code_list. */
	uint64_t deadline_ns; /**< Monotonic. */
	bool late; /**< Something was not looked up because the deadline had passed. */

	/* The object in use, with its image. */
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
/** Give the image in use back to the cache, and let the back end close what it opened. */
void code_set_deinit(struct code_set *s);

/** @return the object that is loaded at an address; NULL: no known object is. */
struct code_object *code_find(const struct code_set *s, uint64_t address);

/**
 * Read an object as a whole, so that everything about it is known, and make it the one in use.
 * @return 0; -errno with o->problem set, or late.
 */
int code_open(struct code_set *s, struct code_object *o);
/** As code_open(), and find out whether source lines of the object are known. */
int code_examine(struct code_set *s, struct code_object *o);

/**
 * Find the source position of an address and its chain of inlined calls.
 * @param ret  Valid until the next question; its addresses are those of the ELF file.
 * @return 0, -ENOENT (nothing is known: no object is there, it is broken, or it is late).
 */
int code_locate(struct code_set *s, uint64_t address, const struct symbols_location **ret);

/**
 * Find the text of a source that the debug information has, as symbols_image_source().
 * @param ret  Valid until the next question.
 * @return 0, -ENOENT (there is none, or nothing is known of the address), -ENOMEM.
 */
int code_source(struct code_set *s, uint64_t address, const char *file, const char **ret, size_t *ret_size);

/** A symbol at its place in memory; its strings are in the arena. */
struct code_symbol {
	uint64_t address, size;
	const char *name, *raw; /**< The name for people, and as it is in the file. */
};

/** Find the function around an address.  @return 0, -ENOENT. */
int code_function(struct code_set *s, uint64_t address, struct code_symbol *ret);
/**
 * Find a kernel.
 * @param handle  The kernel's name in a dispatch (AMD: the address of its descriptor).
 * @return 0, -ENOENT.
 */
int code_kernel(struct code_set *s, uint64_t handle, struct code_symbol *ret);
/**
 * Find the kernel that is the function around an address.
 * @return 0, -ENOENT (it is no kernel).
 */
int code_kernel_around(struct code_set *s, uint64_t address, struct code_symbol *ret);

/**
 * Copy the code at an address, as it is in the file of its object.
 * @return 0, -ENOENT (no known object has all of it).
 */
int code_bytes(struct code_set *s, uint64_t address, void *buf, size_t size);

struct values_arguments;
/**
 * List the arguments of a kernel, by its name in a dispatch.
 * @param hidden  Also those that the compiler has added.
 * @param ret     Zeroed; release with values_arguments_deinit() in any case.
 * @return 0, -ENOENT, -EBADMSG (what the object says of them is broken), -ENOMEM.
 */
int code_arguments(struct code_set *s, uint64_t handle, bool hidden, struct values_arguments *ret);

/**
 * Find an argument that the compiler has added to a kernel (AMD).
 * @param kind        As code objects note it, such as "hidden_hostcall_buffer".
 * @param ret_offset  From the first argument on.
 * @return as code_arguments(); also -ENOENT: the kernel has none.
 */
int code_hidden_argument(struct code_set *s, uint64_t handle, const char *kind, uint32_t *ret_offset);

/** Most sentences of code_missing(). */
#define CODE_MISSING_MAX 20
/**
 * Write sentences about what is missing, in the arena.
 * @param all  Also about objects that nothing was asked of.
 * @return how many are in @p ret; at most CODE_MISSING_MAX.
 */
size_t code_missing(const struct code_set *s, bool all, const char *ret[CODE_MISSING_MAX]);

#endif /* WORKER_SNAPSHOT_CODE_H */
