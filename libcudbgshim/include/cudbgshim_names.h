/* SPDX-License-Identifier: MIT */
#ifndef CUDBGSHIM_NAMES_H
#define CUDBGSHIM_NAMES_H

/**
 * @file cudbgshim_names.h
 * Names and plain words for the numbers of the CUDA debugger API.
 *
 * Names are the vendor's, so that they can be searched for; words and hints are for a person who
 * has never seen them.  Every function that returns a string answers NULL for a number that it does
 * not know.  Strings are static.
 */

#include <stdint.h>

/** @return the name of a result, such as `CUDBG_ERROR_NO_DEVICE_AVAILABLE`. */
const char *cudbgshim_result_name(uint32_t result);
/** @return what went wrong, without a full stop. */
const char *cudbgshim_result_words(uint32_t result);
/** @return what the user can do about it; NULL where there is nothing to say. */
const char *cudbgshim_result_hint(uint32_t result);

/** @return the name of an event, such as `CUDBG_EVENT_KERNEL_READY`. */
const char *cudbgshim_event_name(uint32_t kind);
/** @return the vendor's name of a slot as of release 13.4, such as `getNumDevices`. */
const char *cudbgshim_slot_name(uint32_t slot);

#endif /* CUDBGSHIM_NAMES_H */
