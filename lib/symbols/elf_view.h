/* SPDX-License-Identifier: MIT */
#ifndef SYMBOLS_ELF_VIEW_H
#define SYMBOLS_ELF_VIEW_H

/**
 * @file elf_view.h
 * Bounded access to the headers of a 64-bit little-endian ELF file in memory.  Internal.
 */

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifndef EM_CUDA
#define EM_CUDA 190
#endif

/** A file that was looked at. */
struct elf_view {
	const uint8_t *data;
	size_t size;
	Elf64_Ehdr header;
	size_t n_segments;
	size_t n_sections; /**< 0 when there is no usable section table. */
	/** Header of the section that holds section names; sh_size is 0 when there is none. */
	Elf64_Shdr names;
};

/**
 * Look at a file.
 * @param data  Borrowed as long as @p v is used.
 * @return 0, -ENOEXEC (no ELF, other class, byte order or machine; broken program headers).
 */
int elf_view_init(struct elf_view *v, const void *data, size_t size);

/** @return program header @p i, which must be below n_segments. */
Elf64_Phdr elf_view_segment(const struct elf_view *v, size_t i);
/** @return section header @p i, which must be below n_sections. */
Elf64_Shdr elf_view_section(const struct elf_view *v, size_t i);

/** @return the content of a section, or NULL when it is not, or not wholly, in the file. */
const uint8_t *elf_view_section_data(const struct elf_view *v, const Elf64_Shdr *s);
/** Does every section lie in the file, as libelf expects?  False also when there are none. */
bool elf_view_sections_are_sane(const struct elf_view *v);
/**
 * @return a terminated string in a string table; "" when there is none at @p at, or one beyond 16
 *         KiB.
 */
const char *elf_view_string(const struct elf_view *v, const Elf64_Shdr *table, uint64_t at);
/** @return the name of a section; "" when it has none. */
const char *elf_view_section_name(const struct elf_view *v, const Elf64_Shdr *s);

/** The same in all note segments of a file. */
const uint8_t *elf_view_note(const struct elf_view *v, const char *owner, uint32_t type,
			     size_t *ret_size);

#endif /* SYMBOLS_ELF_VIEW_H */
