/* SPDX-License-Identifier: MIT */
#ifndef VALUES_CONSTANT_BANK_H
#define VALUES_CONSTANT_BANK_H

/**
 * @file constant_bank.h
 * Where variables of NVIDIA's constant memory are.  Debug information does not say it: their relocations
 * are of 4 bytes, which compilers leave to the driver, and the driver to nobody.  Their symbols do.
 */

#include <stdint.h>

#include "base/elf_view.h"

/** The bank of `__constant__` variables, and how many bytes a bank has at most. */
#define VALUES_CONSTANT_BANK	 3u
#define VALUES_CONSTANT_BANK_MAX UINT64_C(0x10000)

/**
 * Find where a variable is.
 * @param name  Its symbol.
 * @param ret   Below VALUES_CONSTANT_BANK_MAX an offset in the bank, else an address of global memory.
 * @return 0, -ENOENT, -ENOTUNIQ (several symbols of that name lie at different places).
 */
int values_constant_find(const struct elf_view *cubin, const char *name, uint64_t *ret);

#endif /* VALUES_CONSTANT_BANK_H */
