/* SPDX-License-Identifier: MIT */
#ifndef COREFILE_ELF_READ_H
#define COREFILE_ELF_READ_H

/**
 * @file elf_read.h
 * Bounded view of a 64-bit little-endian ELF file, whole or cut short.
 */

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "corefile/corefile.h"

/** The facts of the ELF header, cut to what lies in the file. */
struct corefile_elf {
	const uint8_t *data; /**< The file; borrowed. */
	size_t size;
	uint8_t osabi, abi_version;
	uint16_t type, machine;
	uint64_t sections_at; /**< Offset of the section table; 0 if there is none. */
	/** Sections whose headers lie in the file; 0 without a section table. */
	uint32_t n_sections;
	uint32_t n_promised; /**< Sections that the header speaks of. */
	uint32_t names; /**< Number of the section that holds section names. */
	uint64_t segments_at; /**< Offset of the program headers; 0 if there are none. */
	uint32_t n_segments; /**< Program headers that lie in the file. */
	uint32_t n_segments_promised; /**< Program headers that the ELF header speaks of. */
};

/**
 * Open a file.
 * @param data   Borrowed as long as @p ret is used.
 * @param error  Says what is wrong; NULL allowed.
 * @return 0, -ENOEXEC (not such a file, or it ends before its section table).
 */
int corefile_elf_open(const void *data, size_t size, struct corefile_elf *ret,
		      struct corefile_problem *error);
/**
 * Read a section header.
 * @param i  Below n_sections.
 */
void corefile_elf_section(const struct corefile_elf *e, uint32_t i, Elf64_Shdr *ret);
/**
 * Read a program header.
 * @param i  Below n_segments.
 */
void corefile_elf_segment(const struct corefile_elf *e, uint32_t i, Elf64_Phdr *ret);
/**
 * Find the content of a section, as far as it lies in the file.
 * @param ret_size  At most sh_size; untouched when NULL is returned.
 * @return NULL when nothing of it lies in the file.
 */
const void *corefile_elf_bytes(const struct corefile_elf *e, const Elf64_Shdr *section,
			       size_t *ret_size);
/**
 * @return the C string at an offset of a string table, borrowed from the file; NULL when it does
 *         not end in the table, or is longer than 4095 bytes.
 */
const char *corefile_elf_string(const struct corefile_elf *e, const Elf64_Shdr *table,
				uint64_t offset);

#endif /* COREFILE_ELF_READ_H */
