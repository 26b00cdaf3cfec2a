/* SPDX-License-Identifier: MIT */
#ifndef VALUES_ARGUMENT_SIGNATURE_H
#define VALUES_ARGUMENT_SIGNATURE_H

/**
 * @file signature.h
 * The types of a function's parameters, from its name: `scale(int const*, int, float)`.
 */

#include <stddef.h>

/**
 * Call @p visit for the type of each parameter until it returns non-zero, which is then returned.
 * @param name   A demangled name, also with a result type and template arguments in front.
 * @param visit  Gets a part of @p name, which is not terminated.
 * @return 0, -ENOENT (the name has no parameters, as that of a C function), -EBADMSG (its brackets
 *         do not fit together, or it was cut off), a result of @p visit.
 */
int values_signature_each(const char *name, int (*visit)(void *arg, const char *type, size_t size),
			  void *arg);

#endif /* VALUES_ARGUMENT_SIGNATURE_H */
