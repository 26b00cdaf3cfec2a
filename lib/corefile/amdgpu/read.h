/* SPDX-License-Identifier: MIT */
#ifndef COREFILE_AMDGPU_READ_H
#define COREFILE_AMDGPU_READ_H

/**
 * @file amdgpu_read.h
 * Reads an AMDGPU core, split or unified, whoever wrote it: from bytes to the model.
 *
 * The file is not trusted.  What makes no sense is left out and listed in amdcore.problems; what
 * remains is consistent.  Time and memory are bounded by the size of the file, whatever its counts
 * say.  Odd alignments and flags, as the ROCm runtime writes them, do not matter.
 */

#include "corefile/amdgpu/model.h"

/** Is this an AMDGPU core, whether or not it can be read? */
bool amdcore_is(const void *data, size_t size);

/**
 * Read a core.
 * @param data   The file; borrowed, because the result points into it.
 * @param ret    Release with amdcore_deinit().  Complete when ret->problems.total is 0.
 * @param error  Says why nothing could be read; NULL allowed.
 * @return 0, -ENOEXEC (not an AMDGPU core, or compressed), -EBADMSG (its note makes no sense; @p
 *         error says how), -ENOMEM.
 */
int amdcore_read(const void *data, size_t size, struct amdcore *ret,
		 struct corefile_problem *error);
/**
 * The same for the core of any process on a processor that is known (processor.h): without the note of a GPU, its
 * tables are empty.
 */
int amdcore_read_process(const void *data, size_t size, struct amdcore *ret, struct corefile_problem *error);

#endif /* COREFILE_AMDGPU_READ_H */
