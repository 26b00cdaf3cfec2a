/* SPDX-License-Identifier: MIT */
#ifndef WORKER_VALUE_REGISTERS_H
#define WORKER_VALUE_REGISTERS_H

/** @file registers.h  Registers of a wave by their kind and number, and by their names. */

#include <stdbool.h>
#include <stdint.h>

#include "rpc_gen.h"
#include "values/machine.h"

/**
 * Read a register of those that were copied.
 * @return 0, -ENXIO when it is not among them.
 */
int value_registers_read(const struct rpc_wave_registers *r, uint32_t lane, enum values_file file, uint32_t number,
			 uint32_t *ret);
/** Parse the name of a register: v3, exec.  @return false when there is none of that name. */
bool value_registers_parse(const char *name, enum values_file *ret_file, uint32_t *ret_number);
/** Has each lane a register of its own of this kind? */
bool value_registers_are_of_lanes(enum values_file file);

#endif /* WORKER_VALUE_REGISTERS_H */
