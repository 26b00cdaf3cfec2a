/* SPDX-License-Identifier: MIT */
#ifndef CTL_TERMINAL_PAGER_H
#define CTL_TERMINAL_PAGER_H

/** @file pager.h  Shows text through $PAGER, or less. */

#include <stddef.h>

/**
 * Show a text and wait until the user has quit the pager; to read only a part is no error.
 * @return 0 (shown), -ENOENT (no pager wanted, or it could not be started), -errno.
 */
int pager_show(const char *text, size_t size);

#endif /* CTL_TERMINAL_PAGER_H */
