/* SPDX-License-Identifier: MIT */
#ifndef VALUES_GLOBAL_H
#define VALUES_GLOBAL_H

/**
 * @file global.h
 * Variables outside of functions, by their names: of device, constant or shared memory.
 */

#include "symbols/debug_info.h"
#include "values/scope.h"

/** Longest name, with its namespaces. */
#define VALUES_GLOBAL_NAME_MAX 1024u

/**
 * Find a variable by its name, as a function sees it: in the namespaces around the function from the
 * innermost one outwards, and in the function's own compile unit before all others.  Namespaces
 * without a name need not be written.
 * @param s     The function; zeroed: none, and the name is looked for everywhere.
 * @param name  As `table` or `ns::table`.
 * @param ret   Its names and DIEs lie in the image.
 * @return 0, -ENOENT, -ENOTUNIQ (several units have one, and none is the function's), -E2BIG (the
 *         function's own unit has none, and there is more than may be read for one question),
 *         -ENAMETOOLONG.
 */
int values_global_find(struct debug_info *d, const struct values_scope *s, const char *name,
		       struct values_variable *ret);

#endif /* VALUES_GLOBAL_H */
