/* SPDX-License-Identifier: MIT */
#ifndef SYMBOLS_LOCATION_H
#define SYMBOLS_LOCATION_H

/**
 * @file location.h
 * Fills a struct symbols_location.  Internal.
 */

#include "symbols/image.h"

/** Make a location empty, without touching all of its text. */
void location_init(struct symbols_location *l);
/**
 * Add a frame.
 * @return the frame, zeroed; NULL (and the location is marked as cut) when there is no room.
 */
struct symbols_frame *location_add(struct symbols_location *l);
/**
 * Keep the name of a frame's function as it is and demangled.
 * @param raw  NULL: unknown.
 */
void location_set_function(struct symbols_location *l, struct symbols_frame *f, const char *raw);
/**
 * Keep the source position of a frame.
 * @param file  NULL: unknown.
 * @param line, column  0 or less: unknown.
 */
void location_set_position(struct symbols_location *l, struct symbols_frame *f, const char *file,
			   int line, int column);

#endif /* SYMBOLS_LOCATION_H */
