/* SPDX-License-Identifier: MIT */
#ifndef COREFILE_ELF_WRITE_H
#define COREFILE_ELF_WRITE_H

/**
 * @file elf_write.h
 * Makes the ELF header of a core, and section 0 with the counts that do not fit into it.
 */

#include <elf.h>
#include <stdint.h>

/** The members that vary in the ELF headers that we write. */
struct corefile_elf_header {
	uint8_t osabi, abi_version;
	uint16_t type, machine;
	uint64_t sections_at;  /**< Offset of the section table. */
	uint32_t n_sections;   /**< Count of sections, with the empty one at the beginning. */
	uint32_t names;	       /**< Number of the section that holds section names. */
	uint64_t segments_at;  /**< Offset of the program headers. */
	uint32_t n_segments;
};

/** @return the ELF header.  Counts that do not fit into it get the values that refer to section 0. */
Elf64_Ehdr corefile_elf_header(const struct corefile_elf_header *h);
/**
 * @return section 0, which is empty or has the counts that do not fit into the header (gABI,
 *         e_shnum, e_phnum).
 */
Elf64_Shdr corefile_elf_section0(const struct corefile_elf_header *h);

#endif /* COREFILE_ELF_WRITE_H */
