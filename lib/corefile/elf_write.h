/* SPDX-License-Identifier: MIT */
#ifndef COREFILE_ELF_WRITE_H
#define COREFILE_ELF_WRITE_H

/**
 * @file elf_write.h
 * Packs 64-bit little-endian ELF headers into memory, extended numbering included.
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

/** Pack the ELF header.  Counts that do not fit into it get the values that refer to section 0. */
void corefile_elf_pack_header(uint8_t b[sizeof(Elf64_Ehdr)], const struct corefile_elf_header *h);
/** Pack a section header. */
void corefile_elf_pack_section(uint8_t b[sizeof(Elf64_Shdr)], const Elf64_Shdr *section);
/** Pack a program header. */
void corefile_elf_pack_segment(uint8_t b[sizeof(Elf64_Phdr)], const Elf64_Phdr *segment);
/**
 * Make section 0, which is empty or has the counts that do not fit into the header (gABI, e_shnum,
 * e_phnum).
 */
void corefile_elf_section0(const struct corefile_elf_header *h, Elf64_Shdr *ret);

#endif /* COREFILE_ELF_WRITE_H */
