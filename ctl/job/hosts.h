/* SPDX-License-Identifier: MIT */
#ifndef CTL_JOB_HOSTS_H
#define CTL_JOB_HOSTS_H

/**
 * @file hosts.h
 * Reads lists of hosts: one a line, `#` begins a comment, and words behind a name are not looked at, as
 * `slots=8` in the files of MPI and DeepSpeed.  `n[01-16,20]` is many names, `a,b` two, `user@host:port` one
 * with a user and a port.
 */

#include <stddef.h>

#define HOSTS_MAX	 4096 /**< Most hosts of a list. */
#define HOSTS_NAME_MAX 255  /**< Longest name, with user and port. */

/** Names, each once, in the order of the text. */
struct hosts {
	char **list;
	size_t n, capacity;
};

/**
 * Read a list.
 * @param ret_line  After -EINVAL and -EFBIG, the line from 1 on that was not understood.
 * @param ret_why   After these, what is wrong with it: a constant.
 * @return 0, -EINVAL, -EFBIG (more than HOSTS_MAX), -ENOMEM; after a failure @p ret is empty.
 */
int hosts_parse(const char *text, size_t size, struct hosts *ret, size_t *ret_line, const char **ret_why);
/** Free a list; a zeroed object is accepted. */
void hosts_deinit(struct hosts *h);

/**
 * Take a port off the end of a name: `n1:2222` becomes `n1`.
 * @return the port in the same text, or NULL where there is none.
 */
const char *hosts_split_port(char *name);

#endif /* CTL_JOB_HOSTS_H */
