/* SPDX-License-Identifier: MIT */
#ifndef CTL_VERBS_JOB_MERGE_FILES_H
#define CTL_VERBS_JOB_MERGE_FILES_H

/** @file merge_files.h  Merges files and directories that a user names. */

#include <stdbool.h>

#include "ctl/document/merge.h"

#define MERGE_FILES_MAX 65536 /**< Most files and directories of one command line. */

struct ctl;

/** Whether a path is a directory: all documents in it are meant then. */
bool merge_is_directory(const char *path);
/**
 * Merge documents, cores, and every *.json file of directories.  What cannot be used is told, noted in the
 * result, and skipped.
 * @param m    Empty; @p ret lives as long.
 * @return 0, or negative with the error of the first file when none can be used.
 */
int merge_files(struct ctl *c, struct merge *m, int argc, char **argv, struct rpc_gpu_snapshot_result *ret);

/** Print a merged document, as a tree or as JSON.  @return 0, negative with err. */
int merge_show(struct ctl *c, const struct rpc_gpu_snapshot_result *s);

#endif /* CTL_VERBS_JOB_MERGE_FILES_H */
