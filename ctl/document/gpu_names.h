/* SPDX-License-Identifier: MIT */
#ifndef CTL_DOCUMENT_GPU_NAMES_H
#define CTL_DOCUMENT_GPU_NAMES_H

/**
 * @file gpu_names.h
 * What people call the GPUs of a process: 0, 1, ... in the order in which `devices` lists them.
 *
 * The protocol names a GPU by the kernel's id, which is an arbitrary number on AMD.  An object of
 * this file knows the GPUs of one process, or of one document, and translates both ways.  It keeps
 * copies: the reply that it was made of may go.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/out.h"
#include "rpc_gen.h"

/** GPUs that have an index; KFD itself knows fewer (MAX_GPU_INSTANCE is 64). */
#define GPU_NAMES_MAX 128

struct gpu_names {
	size_t n; /**< 0: nothing is known, and every GPU is called by its id. */
	struct {
		uint32_t id;
		char name[64]; /**< Marketing name; "" when the id is all that is known. */
		char pci[24];
	} gpus[GPU_NAMES_MAX];
};

/** Take the GPUs of a document or a reply, in its order; those beyond the limit have no index. */
void gpu_names_set(struct gpu_names *g, const struct rpc_device *devices, size_t n);

/** The index of a GPU; -1 when it is not among those that are known. */
int gpu_names_index(const struct gpu_names *g, uint32_t gpu_id);

/**
 * A GPU in a table cell: `0`, or `id 4711` when it has no index.
 * @return text in the arena; NULL when that is exhausted.
 */
const char *gpu_names_text(const struct gpu_names *g, struct rpc_arena *a, uint32_t gpu_id);

/**
 * A GPU in a sentence: `GPU 0 (MI300X)`, `GPU 0` without a name, `GPU id 4711` without an index.
 * The name may hold what a stranger chose: escape it before printing.
 * @return text in the arena; NULL when that is exhausted.
 */
const char *gpu_names_label(const struct gpu_names *g, struct rpc_arena *a, uint32_t gpu_id);

/**
 * Append `GPU 0` for the agent's `device 51187` at the beginning of a text.
 * @return bytes of the text that were replaced; 0 when it begins with something else, or the GPU has
 *         no index.
 */
size_t gpu_names_put(const struct gpu_names *g, struct out *o, const char *text);

/**
 * Find a GPU by what a person called it.  A number below the number of GPUs is an index, even when
 * another GPU has it as its id; any other number is an id; a PCI address such as 0000:03:00.0 is
 * never ambiguous.
 * @return 0, -EINVAL (neither a number nor a PCI address), -ENODEV (no such GPU).
 */
int gpu_names_find(const struct gpu_names *g, const char *text, uint32_t *ret_gpu_id);

#endif /* CTL_DOCUMENT_GPU_NAMES_H */
