/* SPDX-License-Identifier: MIT */
#ifndef COREFILE_CUDA_READ_H
#define COREFILE_CUDA_READ_H

/**
 * @file cuda_read.h
 * Reads a CUDA core, whoever wrote it and however old: from bytes to the model.
 *
 * The file is not trusted.  Each record has the size that its table says: fields beyond it are
 * absent, unknown ones behind the known are skipped.  What cannot be made sense of is left out and
 * listed in cudacore.problems, with section and offset; what remains is consistent, so that every
 * position and range in it is valid.  Time and memory are bounded by the size of the file, whatever
 * its counts say.
 */

#include "corefile/cuda/model.h"

/** Is this a CUDA core, whether or not it can be read? */
bool cudacore_is(const void *data, size_t size);

/**
 * Read a core.
 * @param data   The file; borrowed, because strings and blobs of the result point into it.
 * @param ret    Release with cudacore_deinit().  Complete when ret->problems.total is 0.
 * @param error  Says why nothing could be read; NULL allowed.
 * @return 0, -ENOEXEC (not a CUDA core, compressed, or without a section table; @p error says
 *         which), -EBADMSG (no device in it), -ENOMEM.
 */
int cudacore_read(const void *data, size_t size, struct cudacore *ret,
		  struct corefile_problem *error);

#endif /* COREFILE_CUDA_READ_H */
