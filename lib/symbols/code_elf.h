/* SPDX-License-Identifier: MIT */
#ifndef SYMBOLS_CODE_ELF_H
#define SYMBOLS_CODE_ELF_H

/**
 * @file code_elf.h
 * The ELF files that this module reads: code objects, cubins and host objects.  Internal.
 */

#include "base/elf_view.h"

#ifndef EM_CUDA
#define EM_CUDA 190
#endif

/**
 * Look at a file.  A section table that is not whole counts as none.
 * @param data  Borrowed as long as @p v is used.
 * @return 0, -ENOEXEC (no ELF, other class, byte order or machine; broken program headers).
 */
int code_elf_init(struct elf_view *v, const void *data, size_t size);

/** @return the content of a section, or NULL when it is not, or not wholly, in the file. */
const uint8_t *code_elf_section_data(const struct elf_view *v, const Elf64_Shdr *s);
/** Does every section lie in the file, as libelf expects?  False also when there are none. */
bool code_elf_sections_are_sane(const struct elf_view *v);
/**
 * Find the description of the first note of that owner and type in all note segments.
 * @return NULL when there is none.
 */
const uint8_t *code_elf_note(const struct elf_view *v, const char *owner, uint32_t type,
			     size_t *ret_size);

#endif /* SYMBOLS_CODE_ELF_H */
