/* SPDX-License-Identifier: MIT */
#ifndef SYMBOLS_LOCATION_H
#define SYMBOLS_LOCATION_H

/** @file location.h  Filling a struct symbols_location.  Internal. */

#include "symbols/image.h"

/** Make it empty, without touching all of its text. */
void location_init(struct symbols_location *l);
/** Next frame, zeroed; NULL (and cut) when there is no room. */
struct symbols_frame *location_add(struct symbols_location *l);
/** Keep a name in both forms. @p raw NULL: unknown. */
void location_set_function(struct symbols_location *l, struct symbols_frame *f, const char *raw);
/** @p file NULL: unknown. */
void location_set_position(struct symbols_location *l, struct symbols_frame *f, const char *file,
			   int line, int column);

#endif /* SYMBOLS_LOCATION_H */
