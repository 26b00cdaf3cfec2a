/* SPDX-License-Identifier: MIT */
#ifndef COREFILE_COMPRESS_H
#define COREFILE_COMPRESS_H

/**
 * @file compress.h
 * A whole file as one zstd frame (RFC 8878), written and read as a stream; and gzip, in which drivers
 * from CUDA 13.1 on write cores, read.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct corefile_compress;

/**
 * @param fd    Borrowed.
 * @param total Bytes that will be written, exactly; the frame says so.
 * @return 0, -ENOMEM.
 */
int corefile_compress_create(int fd, uint64_t total, struct corefile_compress **ret);
/** @return 0, -errno of write(2), -EIO (the library refuses). */
int corefile_compress_write(struct corefile_compress *c, const void *data, size_t size);
/** End of the frame.  @return as corefile_compress_write(); -EIO also when the total was wrong. */
int corefile_compress_finish(struct corefile_compress *c);
void corefile_compress_destroy(struct corefile_compress *c);

bool corefile_is_zstd(const void *data, size_t size);
bool corefile_is_gzip(const void *data, size_t size);
/**
 * Of either format.
 * @param max  Most bytes that come out.
 * @return 0, -EBADMSG (damaged, or cut short), -EFBIG (more than @p max), -ENOMEM, -errno of
 *         write(2).
 */
int corefile_decompress(const void *data, size_t size, int out_fd, uint64_t max);

#endif /* COREFILE_COMPRESS_H */
