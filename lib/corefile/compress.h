/* SPDX-License-Identifier: MIT */
#ifndef COREFILE_COMPRESS_H
#define COREFILE_COMPRESS_H

/**
 * @file compress.h
 * A whole file as one zstd frame (RFC 8878), written and read as a stream.  gzip is only read:
 * drivers from CUDA 13.1 on write cores in it.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** A frame that is being written. */
struct corefile_compress;

/**
 * Begin a frame.
 * @param fd    Blocking descriptor that gets the frame; borrowed.
 * @param total Bytes that will be written, exactly; the frame says so.
 * @param ret   Release with corefile_compress_destroy().
 * @return 0, -ENOMEM.
 */
int corefile_compress_create(int fd, uint64_t total, struct corefile_compress **ret);
/**
 * Compress the next bytes.
 * @return 0, -errno of write(2), -EIO (the library refuses).
 */
int corefile_compress_write(struct corefile_compress *c, const void *data, size_t size);
/**
 * End the frame.
 * @return as corefile_compress_write(); -EIO also when the total was wrong.
 */
int corefile_compress_finish(struct corefile_compress *c);
/** Release the compressor; NULL is allowed.  A frame that was not ended stays damaged. */
void corefile_compress_destroy(struct corefile_compress *c);

/** Does a file begin as zstd files do? */
bool corefile_is_zstd(const void *data, size_t size);
/** Does a file begin as gzip files do? */
bool corefile_is_gzip(const void *data, size_t size);
/**
 * Expand a file of either format.
 * @param out_fd  Gets the content; borrowed, blocking.
 * @param max     Most bytes that may come out.
 * @param ret_at  Also on failure: how far into @p data it came.
 * @return 0, -EBADMSG (damaged, or cut short), -EFBIG (more than @p max), -ENOMEM, -errno of
 *         write(2).
 */
int corefile_decompress(const void *data, size_t size, int out_fd, uint64_t max, uint64_t *ret_at);

#endif /* COREFILE_COMPRESS_H */
