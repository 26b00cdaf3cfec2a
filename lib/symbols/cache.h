/* SPDX-License-Identifier: MIT */
#ifndef SYMBOLS_CACHE_H
#define SYMBOLS_CACHE_H

/**
 * @file cache.h
 * Keeps images that were opened, within a budget of memory; the least recently used are dropped
 * first.
 *
 * An image is found by its build-id, else by where it came from.
 */

#include <stddef.h>
#include <stdint.h>

#include "symbols/image.h"

struct symbols_cache;

/** The key of an image. */
struct symbols_key {
	uint8_t build_id[SYMBOLS_BUILD_ID_MAX];
	size_t build_id_size; /**< 0: the other members are compared, else only the build-id. */
	const char *uri;      /**< Borrowed during the call; NULL is the same as "". */
	uint64_t size;	      /**< Bytes of the image. */
	/**
	 * Tells contents at the same place apart, for instance the modification time of a file;
	 * compilers for AMD write no build-id unless asked.
	 */
	uint64_t stamp;
};

/**
 * Make an empty cache.
 * @param budget_bytes  Images that are not in use are dropped until the rest fits.
 * @param ret           Release with symbols_cache_destroy().
 * @return 0, -ENOMEM.
 */
int symbols_cache_create(size_t budget_bytes, struct symbols_cache **ret);
/** Release a cache, into which every image must have been put back; NULL is allowed. */
void symbols_cache_destroy(struct symbols_cache *c);

/**
 * Find an image.
 * @return the image, to be given back with symbols_cache_put(), or NULL.
 */
struct symbols_image *symbols_cache_get(struct symbols_cache *c, const struct symbols_key *key);
/**
 * Open an image and keep it.  Call this when symbols_cache_get() found nothing.
 * @param ret  Give back with symbols_cache_put().
 * @return 0, an error of symbols_image_create(), -ENOMEM.
 */
int symbols_cache_add(struct symbols_cache *c, const struct symbols_key *key, const void *bytes,
		      size_t size, struct symbols_image **ret);
/** Give an image back, which may be dropped now; NULL is allowed. */
void symbols_cache_put(struct symbols_cache *c, struct symbols_image *image);

/** @return the bytes that all images take now. */
size_t symbols_cache_bytes(const struct symbols_cache *c);
/** @return the number of images. */
size_t symbols_cache_count(const struct symbols_cache *c);

#endif /* SYMBOLS_CACHE_H */
