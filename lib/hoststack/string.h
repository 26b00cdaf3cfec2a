/* SPDX-License-Identifier: MIT */
#ifndef HOSTSTACK_STRING_H
#define HOSTSTACK_STRING_H

/** @file string.h  Python's strings as UTF-8. */

#include "hoststack/layout.h"
#include "hoststack/memory.h"

/** Most characters of a string that are read; the rest is cut off. */
#define HOSTSTACK_CHARACTERS_MAX 4096

/**
 * Read a str object.
 * @param type  Address of PyUnicode_Type; 0: not known.
 * @param ret  malloc'ed UTF-8, NUL-terminated.  NUL and what is no character become U+FFFD; a byte that was no
 *             text when Python decoded a file's name becomes \xNN.
 * @return 0, -EBADMSG (it is none), -ENOMEM, what hoststack_read() returns.
 */
int hoststack_string(struct hoststack_memory *m, const struct hoststack_layout *l, uint64_t address, uint64_t type,
		     char **ret);
/**
 * The characters of a string as UTF-8.
 * @param kind  Bytes a character: 1, 2 or 4.
 * @return malloc'ed; NULL: no memory.
 */
char *hoststack_utf8(const uint8_t *data, size_t n, unsigned kind);

#endif /* HOSTSTACK_STRING_H */
