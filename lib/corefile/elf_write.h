/* SPDX-License-Identifier: MIT */
#ifndef COREFILE_ELF_WRITE_H
#define COREFILE_ELF_WRITE_H

/**
 * @file elf_write.h
 * 64-bit little-endian ELF records, into memory; extended numbering included.
 */

#include <elf.h>
#include <stdint.h>

struct corefile_elf_header {
	uint8_t osabi, abi_version;
	uint16_t type, machine;
	uint64_t sections_at;  /**< Offset of the section table. */
	uint32_t n_sections;   /**< With the empty one at its beginning. */
	uint32_t names;	       /**< Section that holds the names of all. */
	uint64_t segments_at;  /**< Offset of the program headers. */
	uint32_t n_segments;
};

void corefile_elf_pack_header(uint8_t b[sizeof(Elf64_Ehdr)], const struct corefile_elf_header *h);
void corefile_elf_pack_section(uint8_t b[sizeof(Elf64_Shdr)], const Elf64_Shdr *section);
void corefile_elf_pack_segment(uint8_t b[sizeof(Elf64_Phdr)], const Elf64_Phdr *segment);
/** Section 0: empty, or the counts that do not fit into the header (gABI, e_shnum, e_phnum). */
void corefile_elf_section0(const struct corefile_elf_header *h, Elf64_Shdr *ret);

#endif /* COREFILE_ELF_WRITE_H */
