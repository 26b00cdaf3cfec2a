/* SPDX-License-Identifier: MIT */
#ifndef COREFILE_ELF_READ_H
#define COREFILE_ELF_READ_H

/**
 * @file elf_read.h
 * Opens a core as an ELF file, and says what is wrong with one that is none.
 */

#include "base/elf_view.h"
#include "corefile/corefile.h"

/**
 * Open a file.
 * @param data   Borrowed as long as @p ret is used.
 * @param error  Says what is wrong; NULL allowed.
 * @return 0, -ENOEXEC (not such a file, or it ends before its section table).
 */
int corefile_elf_open(const void *data, size_t size, struct elf_view *ret,
		      struct corefile_problem *error);

#endif /* COREFILE_ELF_READ_H */
