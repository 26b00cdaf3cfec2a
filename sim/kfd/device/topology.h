/* SPDX-License-Identifier: MIT */
#ifndef KFDSIM_TOPOLOGY_H
#define KFDSIM_TOPOLOGY_H

/**
 * @file topology.h
 * The text files around the device: what /sys/class/kfd/kfd would show.
 *
 * Inodes are numbers without memory behind them; every question is answered from the state.
 */

#include "base/out.h"
#include "sim.h"

/** What a name in the tree is. */
enum tree_kind {
	TREE_NONE,
	TREE_ROOT,
	TREE_KFD,
	TREE_CONTROL,
	TREE_RENDER, /**< The render node of a GPU. */
	TREE_DIR,
	TREE_FILE,
};

#define TREE_INO_ROOT	 UINT64_C(1)

/** What an inode is; TREE_NONE for one whose process has gone. */
enum tree_kind tree_kind_of(struct sim *s, uint64_t ino);
/** Is there such an inode, with the same attributes and names in it, as long as the simulator runs? */
bool tree_is_lasting(uint64_t ino);
/** The GPU of a TREE_RENDER. */
struct sim_gpu *tree_gpu(struct sim *s, uint64_t ino);
/** Find a name in a directory.  @return its inode, or 0 if there is no such name. */
uint64_t tree_lookup(struct sim *s, uint64_t parent, const char *name);
/** Call @p each for every entry of a directory, in a stable order. */
void tree_list(struct sim *s, uint64_t dir,
	       void (*each)(void *data, const char *name, uint64_t ino), void *data);
/** Append the text of a TREE_FILE. */
void tree_render(struct sim *s, uint64_t ino, struct out *o);

#endif /* KFDSIM_TOPOLOGY_H */
